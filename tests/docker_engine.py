"""Fixtures of tests that run containers; named as plugin by the modules that use it.

Without an engine or its image such tests are skipped; where ``MLRBENCH_TEST_IMAGE`` names an image,
they fail instead: whoever sets it means them to run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_bench import IMAGE, Bench, names

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.engine import connect


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """A client of the engine, which has the image."""
    absent = pytest.fail if "MLRBENCH_TEST_IMAGE" in os.environ else pytest.skip
    try:
        client = connect()
    except InputError as error:
        absent(str(error))
    if not client.images.list(IMAGE):
        absent(f"the engine has no image {IMAGE}: ci/docker/base.sh builds one")
    yield client
    client.close()


@pytest.fixture
def boxes(engine: Any, tmp_path: Path) -> Iterator[Bench]:
    """Runs jobs in containers; nothing of them may be in the engine afterwards."""
    made = Bench(tmp_path)
    yield made
    made.close()
    assert names(engine, made.run_id) == []
