"""Stage paper: one test a task and repeat, by ``pytest --mlr-stage=paper``."""

import pytest

from pytest_mlrbench.verdict import assert_passed


@pytest.mark.paper
def test_paper(mlr_result):
    """The agent's paper on given results reaches the thresholds."""
    assert_passed(mlr_result)
