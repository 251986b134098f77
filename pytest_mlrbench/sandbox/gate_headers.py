"""Which headers pass the gate, and where keys stand in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

from pytest_mlrbench.models.config import Provider

#: What is sent on, by how names begin. Others could carry a key, name who pays, hide what a call
#: uses, or steer the way: cookies, Forwarded, X-HTTP-Method-Override, X-Goog-FieldMask, and the
#: headers that are for one hop only.
_TO = (
    *("accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta", "x-app"),
    *("openai-beta", "x-stainless-", "x-goog-api-client", "originator", "version", "session"),
    *("conversation_id", "x-codex-", "idempotency-key", "x-client-request-id"),
)
_NOT_TO = ("accept-encoding", "accept-charset")
#: What comes back; others could carry a cookie or name who pays.
_BACK = (
    *("content-type", "content-length", "retry-after", "request-id", "x-request-id"),
    *("anthropic-ratelimit-", "x-ratelimit-", "x-should-retry", "openai-processing-ms"),
    *("openai-version", "openai-model"),
)


def sent_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers of a request that the provider gets, by names in small letters."""
    small = ((name.lower(), value) for name, value in headers.items())
    return {name: value for name, value in small if name.startswith(_TO) and name not in _NOT_TO}


def sent_back(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers of an answer that the agent gets, by names in small letters."""
    small = ((name.lower(), value) for name, value in headers.items())
    return {name: value for name, value in small if name.startswith(_BACK)}


def tokens_in(headers: Mapping[str, str], query: str) -> Iterator[tuple[str, bytes]]:
    """Yield what stands in the places of keys: the header meant, and the value."""
    scheme, _, bearer = headers.get("Authorization", "").partition(" ")
    places = (
        ("authorization", bearer if scheme.lower() == "bearer" else ""),
        ("x-api-key", headers.get("x-api-key", "")),
        ("x-goog-api-key", headers.get("x-goog-api-key", "")),
        ("x-goog-api-key", dict(parse_qsl(query)).get("key", "")),
    )
    for name, value in places:
        yield name, value.strip().encode("utf-8", "surrogatepass")


def credentials(provider: Provider, place: str, key: str) -> dict[str, str]:
    """Return the header with the key, where the provider looks for it.

    :param place: the header that the token came in: Anthropic has two.
    """
    # Not compressed: what an answer used is read out of it.
    plain = {"accept-encoding": "identity"}
    if provider == "google":
        return {**plain, "x-goog-api-key": key}
    if provider == "anthropic" and place == "x-api-key":
        return {**plain, "x-api-key": key}
    return {**plain, "authorization": f"Bearer {key}"}
