"""Under xdist: a worker for each GPU, and never more cases that need one than there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import lay
from fake_nvml import GPUS, USABLE, set_state
from test_scheduling import CONFTEST, Bench

from pytest_mlrbench.gpu_workers import auto_workers

pytest_plugins = ["gpu_bench"]
#: Says that there is one GPU, which the tasks called g… need.
ONE_GPU = """
from pytest_mlrbench.scheduling import OnDemandScheduling

@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config, log):
    return OnDemandScheduling(config, log, gpus=1, needs_gpu=lambda test: "[g" in test)
"""


@pytest.mark.slow
def test_what_needs_no_gpu_is_run_while_others_wait_for_one(tmp_path: Path) -> None:
    """In the order of the list, the second worker would have a case that waits for the GPU."""
    bench = Bench(tmp_path)
    lay(bench.path, {"conftest.py": CONFTEST + ONE_GPU})
    tasks = {f"g{n}": "0.6" for n in range(2)} | {f"b{n}": "0.2" for n in range(3)}
    bench.tasks(tasks)
    bench.run("-n", "2")
    bench.assert_once(list(tasks))
    times: dict[str, float] = {f"{kind} {task}": float(when) for kind, task, when, _ in bench.calls}
    assert times["end g0"] <= times["start g1"]
    assert times["start b0"] < times["end g0"]
    assert bench.makespan < 1.2 + 0.6


@pytest.mark.slow
def test_more_workers_than_can_have_anything_to_do(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    lay(bench.path, {"conftest.py": CONFTEST + ONE_GPU})
    tasks = {f"g{n}": "0.05" for n in range(4)}
    bench.tasks(tasks)
    out = bench.run("-n", "3")
    bench.assert_once(list(tasks))
    assert "4 passed" in out


# -n auto

EXPERIMENTS = ("--mlr-stage=experiment", "--mlr-agent=cmd:true", "--mlr-sandbox=docker")


def workers(pytester: pytest.Pytester, *options: str) -> int | None:
    """How many there are with these options; null where xdist is to count the processors."""
    return auto_workers(pytester.parseconfig("-n", "auto", *options))


@pytest.mark.usefixtures("four_gpus")
def test_there_is_a_worker_for_each_gpu(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workers(pytester, *EXPERIMENTS) == len(USABLE)
    assert workers(pytester, *EXPERIMENTS, "--mlr-gpus=2") == 2
    assert workers(pytester, *EXPERIMENTS, f"--mlr-gpus={GPUS[0]}") == 1
    assert workers(pytester, "--mlr-stage=idea,experiment", *EXPERIMENTS[1:]) == len(USABLE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    assert workers(pytester, *EXPERIMENTS) == 2


@pytest.mark.usefixtures("four_gpus")
def test_xdist_counts_where_no_case_needs_a_gpu(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workers(pytester, *EXPERIMENTS, "--mlr-gpus=0") is None
    assert workers(pytester, "--mlr-stage=idea", *EXPERIMENTS[1:]) is None
    assert workers(pytester, "--mlr-stage=experiment", "--mlr-agent=published:codex") is None
    assert workers(pytester, "--mlr-stage=experiment", "--mlr-agent=fixture") is None
    assert auto_workers(pytester.parseconfig("-n", "logical", *EXPERIMENTS)) is None
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "3")
    assert workers(pytester, *EXPERIMENTS) is None
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS")
    set_state(gpus=0)
    assert workers(pytester, *EXPERIMENTS) is None


@pytest.mark.usefixtures("four_gpus")
def test_what_is_wrong_is_said_before_any_worker_is_started(pytester: pytest.Pytester) -> None:
    with pytest.raises(pytest.UsageError, match="only 5 of this machine's 5 GPUs"):
        workers(pytester, *EXPERIMENTS, "--mlr-gpus=6")
