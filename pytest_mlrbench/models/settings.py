"""What the user says about models: ``PROVIDER:MODEL key=value …``, one line a model."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import SecretStr

from pytest_mlrbench.addresses import without_secrets
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import PROVIDERS, ModelConfig, parse_model

#: What is to be a header, up to its value, and the rest of the word.
_HEADER = re.compile(r"(header(?:\.[A-Za-z0-9-]+=)?).*", re.IGNORECASE | re.DOTALL)
#: How a word of a command begins that has a line about a model in it.
_OPTION = re.compile(r"--mlr-model=|(--override-ini=|-o)?\s*mlr_model\s*=\s*")
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
    shown = f"--mlr-model {printable(line)!r}"
    try:
        name, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise InputError(f"{shown} cannot be read: {error}.") from None
    if name.partition(":")[0] not in PROVIDERS or not name.partition(":")[2]:
        raise InputError(
            f"{shown} begins with no model: write provider:model key=value …, where provider is one"
            f" of {', '.join(PROVIDERS)}."
        )
    if re.search(r"\s", name):
        raise InputError(
            f"{shown} has spaces in the name of the model: put quotes around values alone."
        )
    settings: dict[str, Any] = {"headers": {}}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and re.fullmatch(r"header\.[A-Za-z0-9-]+", key):
            settings["headers"][key.removeprefix("header.")] = value
        elif equals and key in KEYS:
            settings[key] = value
        else:
            bad = _shown(word, after=bool(settings["headers"]))
            raise InputError(
                f"{shown}: {bad!r} is no setting: known are {', '.join(KEYS)} and header.NAME, each"
                " as key=value, with quotes around a value that has a space."
            )
    return name, settings


def command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command as they can be kept: see :func:`printable`.

    Lines about models are in them unread where no model is asked.
    """
    found = []
    for before, word in zip(("", *words), words, strict=False):
        begin = _OPTION.match(word)
        if begin or before == "--mlr-model":
            place = begin.end() if begin else 0
            found.append(word[:place] + printable(word[place:]))
        else:
            found.append(word)
    return tuple(found)


def printable(line: str) -> str:
    """Return a line about a model without what may be a secret.

    That is the value of a header, of which quotes may have been forgotten, or stand wherever a
    shell would allow them; whatever is no setting; and an address with more than an address in it.
    """
    try:
        words = shlex.split(line)
    except ValueError:  # a quote has no end
        words = re.sub(r"[\"'\\]", "", line).split()
    pieces = [piece for word in words for piece in _HEADER.sub(r"\1…", word).split()]
    shown: list[str] = []
    for piece in pieces:
        after = any(one.endswith("…") for one in shown)
        is_name = not shown and "=" not in piece and "@" not in piece
        shown.append(piece if is_name else _shown(piece, after=after))
    return line if shown == words else " ".join(shown)


def _shown(word: str, *, after: bool) -> str:
    """Return what can be printed of a word; *after* another, it may be a part of its value."""
    key, equals, value = word.partition("=")
    if header := _HEADER.match(word):
        return f"{header[1]}…"
    if key == "base_url" and equals:
        try:
            without_secrets(value)
        except ValueError:
            return "base_url=…"
    elif key not in KEYS:
        return f"{key}=…" if equals and not after else "…"
    return word


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
