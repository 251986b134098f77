"""Stage idea: one test a task and repeat, by ``pytest --mlr-stage=idea``."""

import pytest

from pytest_mlrbench.verdict import assert_passed


@pytest.mark.idea
def test_idea(mlr_result):
    """The agent's research idea reaches the thresholds."""
    assert_passed(mlr_result)
