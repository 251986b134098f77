"""Stage experiment: one test a task and repeat, by ``pytest --mlr-stage=experiment``."""

import pytest

from pytest_mlrbench.verdict import assert_passed


@pytest.mark.experiment
def test_experiment(mlr_result):
    """The agent's experiment and its report reaches the thresholds."""
    assert_passed(mlr_result)
