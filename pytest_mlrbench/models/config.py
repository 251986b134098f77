"""Which model is asked, where, and how: plain values, and the key they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from pytest_mlrbench.addresses import without_secrets
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.values import Value

Provider = Literal["anthropic", "openai", "google"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

#: Where the keys are, in the order in which the SDKs look; one is enough.
KEYS: Mapping[Provider, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
_ADDRESSES: Mapping[Provider, str] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
}
#: What the SDKs are given where a server of this machine wants no key: they insist on one.
NO_KEY = "no-key"
#: Tokens of one call: more are a mistake, of a user or of a provider.
MOST_TOKENS = 10**9


def _pairs(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, Mapping) else value


def _address(url: str) -> str:
    return without_secrets(url) if url else url


class Parameters(Value):
    """What can be set for an answer; null leaves it to the provider.

    :param max_tokens: most tokens of the answer, reasoning included. Anthropic must be told one.
    :param temperature: 0 is the least random.
    :param seed: for answers that can be had again, as far as the provider can.
    :param effort: how much a model reasons.
    """

    max_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    effort: Effort | None = None


P = TypeVar("P", bound=Parameters)


class ModelConfig(Parameters):
    """A model and how to reach it; holds no key, and neither shows nor dumps values of headers.

    :param base_url: the address the provider's SDK takes (for OpenAI with ``/v1``); empty for the
        SDK's own variable (``OPENAI_BASE_URL``, …) or the provider itself.
    :param key_env: the environment variable with the key; empty for the provider's usual one.
    :param headers: sent with every request.
    :param timeout: seconds one try may take in all.
    :param images: whether it is shown figures; a model of texts only refuses them.
    :param api: of OpenAI's two interfaces, the one that is used. ``chat`` takes a seed and is
        spoken by servers of others; a few models of OpenAI know only ``responses``.
    :param price_in: USD for a million tokens of input, where the price table has none or another;
        it goes with *price_out*, that of output.
    """

    model_config = ConfigDict(hide_input_in_errors=True, extra="forbid")

    provider: Provider
    model: str = Field(min_length=1, pattern=r"^[^\s?#]+$")
    base_url: Annotated[str, AfterValidator(_address)] = ""
    key_env: str = Field(default="", pattern=r"^[A-Za-z0-9_]*$")
    headers: Annotated[tuple[tuple[str, SecretStr], ...], BeforeValidator(_pairs)] = ()
    timeout: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    api: Literal["chat", "responses"] = "chat"
    images: bool = True
    price_in: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_out: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _prices_in_pairs(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("price_in and price_out go together")
        return self

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def address(self) -> str:
        """The base address in force; empty for the provider's own.

        :raises InputError: that of the environment is not usable.
        """
        variable = _ADDRESSES[self.provider]
        try:
            return self.base_url or _address(os.environ.get(variable, "").strip())
        except ValueError as error:
            raise InputError(f"{variable} is not usable: {error}.") from None

    @property
    def key_names(self) -> tuple[str, ...]:
        """The variables one of which holds the key."""
        return (self.key_env,) if self.key_env else KEYS[self.provider]

    def key(self) -> SecretStr:
        """Return the key.

        :raises InputError: there is none and the server is not on this machine, or no key looks
            like this one.
        """
        for name in self.key_names:
            if value := os.environ.get(name, "").strip():
                # What cannot be sent is repeated in full by the HTTP library's error.
                if not (value.isascii() and value.isprintable()):
                    raise InputError(f"{name} holds a character that no key has: set it again.")
                return SecretStr(value)
        if _is_local(self.address):
            return SecretStr(NO_KEY)
        raise InputError(f"{self} needs a key: set {' or '.join(self.key_names)}.")

    def with_defaults(self, wanted: P) -> P:
        """Return *wanted*, filled up with the parameters of this model."""
        own = {name: getattr(self, name) for name in Parameters.model_fields}
        given = {name: v for name in own if (v := getattr(wanted, name)) is not None}
        return wanted.model_copy(update={**own, **given})

    @classmethod
    def checked(cls, **settings: Any) -> Self:
        """Return the config with these settings.

        :raises InputError: one of them is not usable.
        """
        try:
            return cls(**settings)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"])) or "settings"
            # Behind a space may stand what belongs into a line of settings: a header, say.
            name, *more = f"{settings.get('provider')}:{settings.get('model')}".split()
            name += " …" * bool(more)
            raise InputError(f"model {name} is not usable: {place}: {fault['msg']}.") from None


def _is_local(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def parse_model(text: str, **settings: Any) -> ModelConfig:
    """Return the model that ``provider:model`` names, as ``openai:gpt-5``.

    :param settings: further fields of :class:`ModelConfig`.
    :raises InputError: it names no model, or a setting is not usable.
    """
    provider, colon, model = text.strip().partition(":")
    if provider not in PROVIDERS or not colon or not model:
        raise InputError(
            f"{text!r} is no model: write provider:model, where provider is one of"
            f" {', '.join(PROVIDERS)}."
        )
    return ModelConfig.checked(provider=provider, model=model, **settings)
