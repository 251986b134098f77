"""What the user says about models: ``PROVIDER:MODEL key=value …``, one line a model."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import SecretStr

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import PROVIDERS, ModelConfig, parse_model

#: What begins with a header in a word, whose rest is its value.
_HEADER = re.compile(r"(header\.[^=]*=?).*", re.DOTALL)
#: Keys of a line beside ``header.NAME``.
KEYS = (
    *("base_url", "key_env", "timeout", "api", "images"),
    *("max_tokens", "temperature", "seed", "effort"),
    *("price_in", "price_out"),
)


class Settings:
    """Settings of models by their names; a name may be a pattern, as ``openai:*``.

    A later line wins over an earlier one, key by key.

    :raises InputError: a line that is none.
    """

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = [_parse(line) for line in lines]

    def config(self, model: str) -> ModelConfig:
        """Return the model that *model*, as ``openai:gpt-5``, names, with its settings.

        :raises InputError: it names none, or a setting of it is not usable.
        """
        found: dict[str, Any] = {}
        headers: dict[str, SecretStr] = {}
        for pattern, settings in self._lines:
            if fnmatchcase(model.strip(), pattern):
                own = dict(settings)
                headers |= _headers(pattern, own.pop("headers"))
                found |= own
        return parse_model(model, **found, **({"headers": headers} if headers else {}))


def _parse(line: str) -> tuple[str, dict[str, Any]]:
    try:
        name, *words = shlex.split(line) or [""]
    except ValueError as error:
        shown = without_headers(line)
        raise InputError(f"--mlr-model {shown!r} cannot be read: {error}.") from None
    shown = without_headers(line)
    if name.partition(":")[0] not in PROVIDERS or not name.partition(":")[2]:
        raise InputError(
            f"--mlr-model {shown!r} begins with no model: write provider:model key=value …, where"
            f" provider is one of {', '.join(PROVIDERS)}."
        )
    settings: dict[str, Any] = {"headers": {}}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and re.fullmatch(r"header\.[A-Za-z0-9-]+", key):
            settings["headers"][key.removeprefix("header.")] = value
        elif equals and key in KEYS:
            settings[key] = value
        else:
            raise InputError(
                f"--mlr-model {shown!r}: {_hidden(word)!r} is no setting: known are"
                f" {', '.join(KEYS)} and header.NAME, each as key=value."
            )
    return name, settings


def without_headers(line: str) -> str:
    """Return a line, or a word of a command with one in it, without values of headers.

    They may be secrets, and quotes and backslashes may stand wherever a shell would allow them.
    """
    try:
        words = shlex.split(line)
    except ValueError:  # which is refused
        return line.partition("header")[0] + ("header…" if "header" in line else "")
    if not any(_HEADER.search(word) for word in words):
        return line
    return " ".join(map(_hidden, words))


def _hidden(word: str) -> str:
    return _HEADER.sub(r"\1…", word)


def _headers(pattern: str, wanted: dict[str, str]) -> dict[str, SecretStr]:
    """Fill in ``$VARIABLE``: a secret in a header has no place in a settings file."""
    filled = {}
    for name, text in wanted.items():
        variables = re.findall(r"\$([A-Za-z_][A-Za-z0-9_]*)", text)
        if absent := [one for one in variables if one not in os.environ]:
            raise InputError(
                f"--mlr-model {pattern}: header {name} needs the variable {absent[0]}: set it."
            )
        filled[name] = SecretStr(
            re.sub(r"\$([A-Za-z_][A-Za-z0-9_]*)", lambda m: os.environ[m[1]], text)
        )
    return filled
