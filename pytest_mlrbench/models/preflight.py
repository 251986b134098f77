"""One small call to each model before the first case: a run that cannot work ends in seconds."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import Sequence

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Completion, Image, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.retrying import Retries

#: What a model has to answer, in seconds: a server may have to load it first.
PATIENCE = 120.0
#: A server that is not there now will not be there in a minute either.
RETRIES = Retries(attempts=3, first=1.0, longest=4.0, asked=5.0, total=60.0)
#: Models that reason use most of it before they answer.
_MAX_TOKENS = 2000
_SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string"},
    },
    "required": ["score", "colour"],
    "additionalProperties": False,
}
_TEXT = "This is a test. Answer in JSON: score 7, and as colour {}."
_SKIP = "or leave this check out with --mlr-no-preflight"


async def preflight(
    calls: Calls, configs: Sequence[tuple[ModelConfig, bool]], meter: Meter | None = None
) -> list[str]:
    """Ask every model once, all at the same time; return what the user should be warned of.

    A provider that allows no more requests for now passes: the run waits for it as well. Where
    calls are replayed, a model of which no such call was recorded passes too.

    :param configs: the models, and whether each is shown images.
    :param meter: enters what it costs; null if nobody wants to know.
    :raises InputError: a model cannot be used; what is wrong and what to do, in one sentence.
    """
    meter = meter or Meter("preflight", "judge", "preflight")
    wanted: dict[ModelConfig, bool] = {}
    for config, images in configs:
        wanted[config] = images or wanted.get(config, False)
    checks = [_Check(calls, config, images, meter) for config, images in wanted.items()]
    found = await asyncio.gather(*(check.run() for check in checks), return_exceptions=True)
    errors = [one for one in found if isinstance(one, BaseException)]
    for error in errors:
        if not isinstance(error, InputError):
            raise error
    if errors:
        bad = [
            str(check._config)
            for check, one in zip(checks, found, strict=True)
            if isinstance(one, BaseException)
        ]
        others = f" (nor can {', '.join(bad[1:])} be used)" if bad[1:] else ""
        raise InputError(f"{str(errors[0]).removesuffix('.')}{others}.")
    return [one for one in found if isinstance(one, str) and one]


class _Check:
    """The preflight of one model."""

    def __init__(self, calls: Calls, config: ModelConfig, images: bool, meter: Meter) -> None:
        self._calls = calls
        self._config = config
        self._images = images
        self._meter = meter

    async def run(self) -> str:
        """Return a warning; empty if there is none."""
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._ask(images=self._images, schema=True)
        except TimeoutError:
            raise self._error(
                f"gave no answer within {PATIENCE:g} s: check that its server is up, {_SKIP}"
            ) from None
        except SystemFault as fault:
            return await self._explain(fault)
        return self._warning(answer)

    async def _ask(self, *, images: bool, schema: bool) -> Completion:
        prompt = (
            Prompt.of(_TEXT.format("that of the picture"), picture())
            if images
            else Prompt.of(_TEXT.format("blue"))
        )
        request = Request(max_tokens=_MAX_TOKENS, json_schema=_SCHEMA if schema else None)
        return await self._calls.ask(
            self._config,
            prompt,
            request,
            meter=self._meter,
            purpose="preflight",
            retries=RETRIES,
        )

    async def _explain(self, fault: SystemFault) -> str:
        said = fault.message.removesuffix(".")
        if fault.cause == "no_recording":
            return ""
        if fault.cause == "budget":
            said += ": raise the budget, or lower the model's max_tokens"
        if not isinstance(fault, ModelFault):
            raise InputError(f"{self._config} cannot be tried out: {said}.") from None
        if fault.cause == "rate_limit" and fault.passing:
            return ""
        if fault.cause == "bad_request" and fault.status != 404:
            await self._find_refused(said)
        raise InputError(f"{said}: {_remedy(fault)}.") from None

    async def _find_refused(self, said: str) -> None:
        """Leave out one thing after the other, to see which of them is refused.

        :raises InputError: it was found.
        """
        if self._images and await self._works(images=False, schema=True):
            raise InputError(
                f"{self._config} takes no images, which it would be shown ({said}): choose a model"
                f" that does."
            ) from None
        if await self._works(images=self._images, schema=False):
            raise InputError(
                f"{self._config} does not take a JSON schema for its answer ({said}): choose a"
                f" model or a server that does."
            ) from None

    async def _works(self, *, images: bool, schema: bool) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._ask(images=images, schema=schema)
        except (SystemFault, TimeoutError):
            return False
        return True

    def _warning(self, answer: Completion) -> str:
        if answer.stop != "end":
            return (
                f"{self._config} gave no full answer to a test question (it stopped:"
                f" {answer.raw_stop}), so whether it keeps to a JSON schema is not known."
            )
        try:
            given = json.loads(answer.text)
            fits = type(given["score"]) is int and isinstance(given["colour"], str)
        except (ValueError, KeyError, TypeError):
            fits = False
        if fits and 1 <= given["score"] <= 10:
            return ""
        return f"{self._config} does not keep to the JSON schema of a test question."

    def _error(self, words: str) -> InputError:
        return InputError(f"{self._config} {words}.")


def _remedy(fault: ModelFault) -> str:
    if fault.status == 404:
        return "check the name of the model, and base_url if you have set it"
    remedies = {
        "auth": "set a key that may use this model",
        "rate_limit": "raise the quota or choose another model",
        "connection": f"check base_url and that its server is up, {_SKIP}",
        "timeout": f"check that its server is up, {_SKIP}",
        "provider": f"try again later, {_SKIP}",
        "malformed": "check that base_url is the address of its API (for openai it ends in /v1)",
    }
    return remedies.get(fault.cause, "check its settings in --mlr-model")


def picture(side: int = 16) -> Image:
    """Return a small blue square, as PNG."""
    row = b"\x00" + b"\x1f\x4e\xd8" * side
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * side)),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return Image(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), "image/png")
