"""Which program the words of a command run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

_KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"}
_WRAPPERS = {"sudo", "nohup", "env", "exec", "command", "nice", "stdbuf", "timeout", "xvfb-run"}
_WRAPPERS |= {"unbuffer", "setsid", "ionice", "caffeinate"}
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|pypy3?|ipython3?)")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_PROGRAM = re.compile(r".*\.(?:py|sh|ipynb|R|r|jl|js|ts|pl|rb)")


def bare(words: Sequence[str]) -> list[str]:
    """Return *words* without what only says how a command is run."""
    rest = list(words)
    while rest:
        name = posixpath.basename(rest[0])
        if rest[0] in _KEYWORDS or re.match(r"[A-Za-z_]\w*=", rest[0]):
            rest.pop(0)
        elif name in _WRAPPERS:
            rest.pop(0)
            while rest and (rest[0][:1] == "-" or re.fullmatch(r"[\d.]+[smhd]?", rest[0])):
                rest.pop(0)
        else:
            break
    return rest


def script_of(words: Sequence[str], stdin: str | None) -> str | None:
    """Return the commands that a shell is given as a text; null where it is given a file.

    Null too where *words* run no shell.
    """
    if not _SHELL.fullmatch(words[0]):
        return None
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[place + 1] if place + 1 < len(words) else ""
        if word[:1] not in ("-", "+"):
            return None
    return stdin


def program_of(words: Sequence[str], stdin: str | None) -> tuple[str | None, str | None]:
    """Return the file and the text of the program that *words* run; null what they do not give.

    :param stdin: text of the command that it is given to read.
    """
    if _PYTHON.fullmatch(words[0]):
        return _python(words, stdin)
    if (file := next((word for word in words if _PROGRAM.fullmatch(word)), None)) is not None:
        return file, None
    if "-m" in words[:-1] and len(words) > 1:
        return _module(words[words.index("-m") + 1]), None
    return (words[0] if "/" in words[0] else None), None


def _python(words: Sequence[str], stdin: str | None) -> tuple[str | None, str | None]:
    place = 1
    while place < len(words) and words[place][:1] == "-" and words[place] != "-":
        word = words[place]
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            return None, words[place + 1] if place + 1 < len(words) else ""
        if re.fullmatch(r"-[a-zA-Z]*m", word):
            module = words[place + 1] if place + 1 < len(words) else ""
            if module.startswith(("torch.distributed", "accelerate", "papermill", "jupyter")):
                rest = words[place + 2 :]
                return next((w for w in rest if _PROGRAM.fullmatch(w)), None), None
            return _module(module), None
        place += 2 if word in ("-W", "-X") else 1
    if place >= len(words) or words[place] == "-":
        return None, stdin
    return words[place], None


def _module(name: str) -> str:
    return name.replace(".", "/") + ".py"
