"""Fixtures with an open gate; named as plugin by the modules that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_builders import KEY, Loop, Opened, Provider, behind, open_gate

_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
_ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """A loop for gates, in an environment with keys and without proxies and addresses."""
    with pytest.MonkeyPatch.context() as patch, Loop() as running:
        for name in _KEYS:
            patch.setenv(name, KEY)
        for name in (*_PROXIES, *map(str.upper, _PROXIES), *_ADDRESSES):
            patch.delenv(name, raising=False)
        yield running


@pytest.fixture(scope="module")
def _provider(loop: Loop) -> Iterator[Provider]:
    found = Provider(loop)
    loop.run(found.start())
    yield found
    loop.run(found.stop())


@pytest.fixture
def provider(_provider: Provider) -> Provider:
    """The provider that all three names lead to; it has not been asked anything."""
    _provider.got.clear()
    _provider.answer = _provider.chat
    return _provider


@pytest.fixture
def opened(tmp_path: Path, loop: Loop, provider: Provider) -> Iterator[Opened]:
    """A gate without limits in front of that provider."""
    with open_gate(tmp_path, loop, behind(provider)) as gate:
        yield gate
