"""What kind of thing a file is that an agent reads: an input, a package, weights, its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pytest_mlrbench.sandbox.base import DATA, FILES, WORKSPACE
from pytest_mlrbench.sandbox.way import Content

#: ``benchmark-input`` what we laid out and the user's data; ``package`` what an installed package
#: brings, ``installed`` the same where the agent installed it; ``weights`` of models that the agent
#: did not write; ``own`` what a process of the agent wrote, or the agent brought; ``system`` what
#: belongs to the machine and its programs; ``image`` what else lies in the image, as data.
Class = Literal["benchmark-input", "package", "installed", "weights", "own", "system", "image"]
#: Those of which the code is passed over.
BROUGHT: tuple[Class, ...] = ("package", "installed", "image")

#: Where a path in the container begins → class.
_PREFIXES: Mapping[bytes, Class] = {
    DATA.encode(): "benchmark-input",
    WORKSPACE.encode(): "own",
    FILES.encode(): "own",
    b"/home": "own",
    b"/tmp": "own",
    b"/dev/shm": "own",
    b"/var/tmp": "own",
    b"/usr/lib/python3": "package",
}
#: Folders of the machine, and folders of programs wherever they were put, as in ``/opt/conda``.
_SYSTEM = re.compile(
    rb"/(?:bin|boot|dev|etc|lib(?:x?32|64)?|nix|proc|run|sbin|snap|sys|usr)(?:/|$)"
    rb"|/var/(?:backups|cache|lib|local|lock|log|mail|opt|run|spool)(?:/|$)"
    rb"|/(?:opt/nvidia|.+/(?:bin|sbin|lib(?:32|64|exec)?|include|conda-meta))/"
    rb"|/(?:opt/[^/]+|(?:.+/)?[^/]*conda[^/]*)/(?:etc|man|share|ssl|var)/"
    rb"|/(?:\.[^/]*|[^/.]*)$"  # of what lies at the top, all but data.csv may be a folder
)
#: Where those who fetch data look for them, below such folders too.
_DATA = re.compile(rb"/(?:nltk_data|scikit_learn_data|seaborn-data)/")
_PACKAGE = re.compile(rb"/(?:site|dist)-packages/([^/]+)")
_WEIGHTS = re.compile(rb"\.(?:safetensors|gguf|ggml|bin|pt|pth|ckpt|onnx|h5|msgpack|tflite)$")
_SHIPPED = re.compile(rb"/(?:data|models|weights|checkpoints|\.?cache|huggingface|hub|torch)/")
#: What a package is made of, as against the data that comes with it.
_CODE = re.compile(
    rb"\.(?:pyc?|pyi|pth|so(?:\.[0-9.]+)?|egg-link|js|mjs|cjs|node)$"
    rb"|\.(?:dist|egg)-info(?:/|$)|/pyvenv\.cfg$|/package\.json$"
)


def class_of(path: bytes, content: Content | None) -> Class:
    """The class of a file; *content* is what is known of who made it."""
    written = content is not None and bool(content.writers)
    if content is not None and content.origin is not None and not written:
        return "benchmark-input"
    if _PACKAGE.search(path):
        return "installed" if written else "package"
    if written:
        return "own"
    if _WEIGHTS.search(path) and _SHIPPED.search(path):
        return "weights"
    for prefix, kind in _PREFIXES.items():
        if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in (b"", b"/", b"."):
            return kind
    is_system = _SYSTEM.match(path) and not _DATA.search(path)
    return "system" if is_system else "image"


def package(path: bytes) -> str | None:
    """The top-level name of the package that a file belongs to."""
    found = _PACKAGE.search(path)
    if not found or found[1].endswith((b".dist-info", b".egg-info", b".pth", b"__pycache__")):
        return None
    return found[1].split(b".")[0].decode("ascii", "replace")


def is_code(path: bytes) -> bool:
    """Whether a file of a package is code or its paperwork, not data."""
    return _CODE.search(path) is not None
