"""Calls that are kept in files, and answered from them without any model.

A cassette is a folder with one file a call, made to be read and committed::

    <dir>/<case, / being __>/<purpose>-<16 digits of the key>.json

Texts of several lines are lists of lines. Images are there as digests only, keys and headers not
at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.config import NO_KEY, ModelConfig
from pytest_mlrbench.models.exchange import Completion, Part, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.meter import Meter
from pytest_mlrbench.models.redaction import Redaction
from pytest_mlrbench.models.usage import usage_kept

_VERSION = 1
#: Shorter ones are words that servers without keys are given, and that answers hold by chance.
_SHORTEST_SECRET = 8
#: What no single call costs.
_MOST_USD = 10**9


@dataclass(frozen=True)
class Asked:
    """One call: what is asked, of which model, and by whom.

    :param wanted: filled up with the parameters of the model.
    """

    config: ModelConfig
    prompt: Prompt
    wanted: Request
    meter: Meter
    purpose: str

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that makes it this call and no other one."""
        return {
            "case": self.meter.case,
            "role": self.meter.role,
            "who": self.meter.who,
            "purpose": self.purpose,
            "model": str(self.config),
            "system": self.prompt.system,
            "messages": [
                {"role": message.role, "parts": [_part(part) for part in message.parts]}
                for message in self.prompt.messages
            ],
            "parameters": self.wanted.model_dump(mode="json", exclude_none=True),
        }

    @cached_property
    def key(self) -> str:
        """The digest of *identity*."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with an answer, of which the cost may be known, or with a fault."""

    answer: Completion | None = None
    cost_usd: float | None = None
    fault: SystemFault | None = None


class Cassette:
    """A folder of recorded calls. Made by :meth:`record` or :meth:`replay`.

    The same call made twice is one file: the later one is kept, and both are answered by it.
    """

    def __init__(self, path: Path, mode: Literal["record", "replay"]) -> None:
        self.path = path
        self.mode = mode

    @classmethod
    def record(cls, path: Path) -> Self:
        """Return a cassette that keeps every call, and every fault, in *path*.

        :raises InputError: it cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--mlr-record {path} cannot be written: {error.strerror}.") from None
        return cls(path, "record")

    @classmethod
    def replay(cls, path: Path) -> Self:
        """Return a cassette that answers from *path*: no model is asked, and no key is needed.

        :raises InputError: it is no folder.
        """
        if not path.is_dir():
            raise InputError(f"--mlr-replay-calls {path} is no folder: make it with --mlr-record.")
        return cls(path, "replay")

    def file(self, asked: Asked) -> Path:
        """Return where a call is kept."""
        folder = _name(asked.meter.case.replace("/", "__"))
        return self.path / folder / f"{_name(asked.purpose)}-{asked.key[:16]}.json"

    def find(self, asked: Asked) -> Outcome:
        """Return how a call ended when it was recorded.

        A call that is not there ends with the fault ``no_recording``.
        """
        path = self.file(asked)
        try:
            document = json.loads(path.read_bytes())
            if document["key"] != asked.key:
                raise ValueError("of another call")
            return _outcome(document)
        except FileNotFoundError:
            state = "is not there: what is asked has changed since, or was never recorded"
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            state = "is not one that this version has written"
        message = f"the recorded answer of {asked.config}, {path}, {state}; record it again with"
        return Outcome(fault=SystemFault("no_recording", f"{message} --mlr-record."))

    def keep(self, asked: Asked, outcome: Outcome) -> Outcome:
        """Write a call down; return it as it will be replayed, without keys.

        :raises SystemFault: it cannot be written (cause ``disk``).
        """
        document = {
            "version": _VERSION,
            "key": asked.key,
            **asked.identity,
            "answer": outcome.answer and outcome.answer.model_dump(mode="json"),
            "cost_usd": outcome.cost_usd,
            "fault": outcome.fault and _of_fault(outcome.fault),
        }
        document = _each_text(document, Redaction(_secrets(asked.config)))
        path = self.file(asked)
        try:
            path.parent.mkdir(exist_ok=True)
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            beside.write_bytes(_text(_to_read(document)))
            beside.replace(path)
        except OSError as error:
            raise SystemFault("disk", f"{path} cannot be written: {error.strerror}.") from None
        return _outcome(document)


def _part(part: Part) -> Any:
    if isinstance(part, str):
        return part
    digest = hashlib.sha256(part.data).hexdigest()
    return {"image": part.media_type, "bytes": len(part.data), "sha256": digest}


def _name(text: str) -> str:
    """Return *text* as the name of a file; what is different may be the same then."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".")[:150] or "_"


def _secrets(config: ModelConfig) -> Iterable[str]:
    try:
        key = config.key().get_secret_value()
    except InputError:  # a call that failed before it needed one
        key = NO_KEY
    headers = (value.get_secret_value() for _, value in config.headers)
    return [one for one in (key, *headers) if one != NO_KEY and len(one) >= _SHORTEST_SECRET]


def _of_fault(fault: SystemFault) -> dict[str, Any]:
    found: dict[str, Any] = {"cause": fault.cause, "message": fault.message}
    if isinstance(fault, ModelFault):
        found["model"] = {
            "status": fault.status,
            "wait": fault.wait,
            "passing": fault.passing,
            "attempts": fault.attempts,
        }
    return found


def _outcome(document: Any) -> Outcome:
    if document["version"] != _VERSION:
        raise ValueError("of another version")
    if fault := document["fault"]:
        cause, message, more = fault["cause"], fault["message"], fault.get("model")
        kind = SystemFault(cause, message) if more is None else ModelFault(cause, message, **more)
        return Outcome(fault=kind)
    answer = document["answer"]
    read = {"text": _joined(answer["text"]), "usage": usage_kept(answer["usage"])}
    answer = Completion.model_validate({**answer, **read})
    return Outcome(answer=answer, cost_usd=_cost(document["cost_usd"]))


def _cost(value: Any) -> float | None:
    """Return what a call cost; null for whatever cannot be that: files are changed."""
    return value if type(value) in (int, float) and 0 <= value <= _MOST_USD else None


def _each_text(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(part, change) for part in value]
    if isinstance(value, dict):
        return {name: _each_text(part, change) for name, part in value.items()}
    return value


def _to_read(document: Any) -> Any:
    """Return the document with its long texts as lists of lines."""
    lines = {name: _each_text(document[name], _lines) for name in ("system", "messages")}
    if answer := document["answer"]:
        lines["answer"] = {**answer, "text": _lines(answer["text"])}
    return {**document, **lines}


def _lines(text: str) -> str | list[str]:
    return text.split("\n") if "\n" in text else text


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "\n".join(value)


def _text(document: Any) -> bytes:
    try:
        return f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:  # half a character
        return f"{json.dumps(document, indent=1)}\n".encode()
