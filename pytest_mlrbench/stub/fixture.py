"""The stub as a pytest fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_mlrbench.stub.server import StubProvider


@pytest.fixture
def mlr_stub_provider() -> Iterator[StubProvider]:
    """A model provider on this machine that answers rightly, until its ``script`` is set."""
    from pytest_mlrbench.stub.server import StubProvider

    with StubProvider() as stub:
        yield stub
