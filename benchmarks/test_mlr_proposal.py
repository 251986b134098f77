"""Stage proposal: one test a task and repeat, by ``pytest --mlr-stage=proposal``."""

import pytest

from pytest_mlrbench.verdict import assert_passed


@pytest.mark.proposal
def test_proposal(mlr_result):
    """The agent's research proposal reaches the thresholds."""
    assert_passed(mlr_result)
