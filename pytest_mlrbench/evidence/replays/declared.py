"""What a run declares of how it can be run again: ``replay`` in ``results/claims.json``.

A command is enough; the rest is said where it is not what one would guess::

    {"claims": [...],
     "replay": {"command": "python run.py --seed {seed}", "seed": 0, "other_seed": 1,
                "inputs": ["data/train.csv"], "labels": {"data/train.csv": "species"},
                "outputs": ["results/metrics.json"], "spread": 0.05}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from pytest_mlrbench.evidence.records.cells import CLAIMS
from pytest_mlrbench.evidence.records.data import decoded, read
from pytest_mlrbench.values import Value

#: Stands in the command for the seed.
SEED = "{seed}"
_MOST_BYTES = 4_000_000
_Word = Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"^[^\x00]+$")]
_Words = Annotated[tuple[_Word, ...], Field(min_length=1, max_length=200)]
_Names = Annotated[tuple[_Word, ...], Field(max_length=200)]
_Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Declaration(Value):
    """How the results are made again, from the folder of the submission."""

    #: For a shell, or as words; :data:`SEED` in it is replaced.
    command: _Word | _Words
    #: The seed of the reported numbers, and the one to compare them with; the next one if it is
    #: not said.
    seed: _Seed = 0
    other_seed: _Seed | None = None
    #: Files or folders that it reads, below the submission or in ``/data``.
    inputs: _Names = ()
    #: Input → its column or key with what is to be predicted.
    labels: dict[_Word, _Word] = Field(default_factory=dict, max_length=200)
    #: Files that it writes its results to.
    outputs: _Names = ()
    #: How far another seed may move a number, as a share of it.
    spread: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def is_seeded(self) -> bool:
        """Whether it is told a seed."""
        words = (self.command,) if isinstance(self.command, str) else self.command
        return any(SEED in word for word in words)

    @property
    def another(self) -> int:
        """The seed to compare with."""
        other = self.seed + 1 if self.other_seed is None else self.other_seed
        return other if other != self.seed else self.seed + 1

    def words(self, seed: int) -> tuple[str, ...]:
        """Return the command with a seed."""
        if isinstance(self.command, str):
            return "/bin/sh", "-c", self.command.replace(SEED, str(seed))
        return tuple(word.replace(SEED, str(seed)) for word in self.command)


def read_declaration(files: Mapping[str, Path]) -> Declaration | str:
    """Return what is declared, or why there is nothing to run, as the end of a sentence.

    :param files: path below the submission → file.
    """
    data = read(files[CLAIMS], _MOST_BYTES) if CLAIMS in files else None
    said = _loaded(data) if data and len(data) <= _MOST_BYTES else None
    if not isinstance(said, dict) or "replay" not in said:
        return f"{CLAIMS} declares no command that makes the results again"
    raw = said["replay"]
    try:
        return Declaration.model_validate(raw if isinstance(raw, dict) else {"command": raw})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "/".join(map(str, ("replay", *first["loc"])))
        return f"what {CLAIMS} declares cannot be used: {where}: {first['msg']}"


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(decoded(data))
    except (ValueError, RecursionError, MemoryError):
        return None
