"""Stage end_to_end: one test a task and repeat, by ``pytest --mlr-stage=end_to_end``."""

import pytest

from pytest_mlrbench.verdict import assert_passed


@pytest.mark.end_to_end
def test_end_to_end(mlr_result):
    """The agent's research from task to paper reaches the thresholds."""
    assert_passed(mlr_result)
