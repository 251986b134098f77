"""What the user said of the place in which commands of agents run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.resources import no_folder, user_path
from pytest_mlrbench.sandbox.base import Network

Kind = Literal["auto", "docker", "local"]
KINDS = get_args(Kind)
NETWORKS = get_args(Network)
#: What a folder of data may be called: a name below ``/data``.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
#: Tag of the image that the shipped Dockerfile is built to, unless the user names another.
IMAGE = "mlrbench-agents"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """As typed; empty or null where nothing was said."""

    kind: Kind = "auto"
    image: str = ""
    gpus: str | None = None
    network: str = ""
    #: Name below ``/data`` → folder.
    data: Mapping[str, Path] | None = None
    allow_host: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    #: Most US dollars an agent in a container may spend on models in one case.
    agent_max_cost: float | None = None
    #: Those that were typed for this run; others may stand in a file that is for other runs too.
    typed: frozenset[str] = frozenset()

    def check(self) -> None:
        """Make sure that the words are among those that mean something, and go together.

        :raises InputError: they do not.
        """
        for name, word, known in (
            ("sandbox", self.kind, KINDS),
            ("network", self.network, ("", *NETWORKS)),
        ):
            if word not in known:
                choice = ", ".join(filter(None, known))
                raise InputError(f"--mlr-{name}={word}: write one of {choice}.")
        if self.allow_host and self.network == "none":
            raise InputError("--mlr-allow-host does not go with --mlr-network=none: leave one out.")
        if self.allow_host and self.network == "full":
            raise InputError("--mlr-network=full reaches every host: leave out --mlr-allow-host.")
        if self.allow_host:
            from pytest_mlrbench.sandbox.gate_addresses import Host

            for text in self.allow_host:
                Host.parse(text)


def data_folders(words: Sequence[str], base: Path) -> Mapping[str, Path]:
    """Return name → folder of each ``DIR[:NAME]``.

    :raises InputError: there is no such folder, or its name is none or that of another one.
    """
    found: dict[str, Path] = {}
    for word in words:
        place, colon, name = word.rpartition(":")
        # A folder's own name may have a colon.
        if not colon or ("/" in name and not user_path(base, place).is_dir()):
            place, name = word, ""
        folder = user_path(base, place)
        if not folder.is_dir():
            raise InputError(f"--mlr-data {word}: {no_folder(folder)}.")
        if name and not _NAME.fullmatch(name):
            raise InputError(
                f"--mlr-data {word}: the name {name!r} must be letters, digits, '_', '.' and '-',"
                " and must not start with '.' or '-'."
            )
        name = name or folder.resolve().name
        if not name:
            raise InputError(f"--mlr-data {word}: that folder has no name: write {place}:NAME.")
        if name in found:
            raise InputError(
                f"--mlr-data {word}: {found[name]} is called {name} too: write {place}:OTHER_NAME."
            )
        found[name] = folder.resolve()
    return found
