"""``mlrbench status`` tells how far a run is, from its folder alone."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from builders import NO_OUTPUT, NO_REVIEW, make_result, make_run, one_sentence

from pytest_mlrbench.cli import main
from pytest_mlrbench.cli_status import status_lines
from pytest_mlrbench.run.folder import RunFolder, write_json
from pytest_mlrbench.sandbox.heartbeat import FILE, Beat, GpuBeat
from pytest_mlrbench.sandbox.labels import owner

GPU = "GPU-1234abcd-0000-4000-8000-000000000000"


def beat(run: RunFolder, task: str, **changes: object) -> None:
    values: dict[str, object] = {
        "case": f"small/idea/{task}/r1",
        "owner": owner(os.getpid()),
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "sandbox": "docker",
        "state": "runs",
        "started": time.time() - 2470.5,
        "elapsed": 2470.5,
    }
    write_json(run.case_folder("idea", task, 1) / FILE, Beat.model_validate(values | changes))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Three of six cases are finished."""
    return make_run(
        tmp_path,
        make_result("alpha"),
        make_result("beta", fault=NO_OUTPUT),
        make_result("gamma", fault=NO_REVIEW),
        not_run=[f"small/idea/{task}/r1" for task in ("delta", "epsilon", "zeta")],
    )


def test_a_run_that_goes_on(run: RunFolder) -> None:
    beat(
        run,
        "delta",
        gpus=(GpuBeat(uuid=GPU, utilization=0.714, memory=12_300_000_000),),
        last_line="epoch 7/20 …",
    )
    beat(run, "epsilon", state="waits for a GPU", started=time.time() - 5)
    assert status_lines(run.path) == [
        f"run {run.run_id}: 3 of 6 cases are finished (1 pass, 1 fail, 1 not measured),"
        " 2 under way",
        "",
        "case             for      in      GPU                       last line of output",
        'idea/delta/r1    0:41:10  docker  GPU-1234abcd 71% 12.3 GB  "epoch 7/20 …"',
        "idea/epsilon/r1  0:00:05  docker  -                         (waits for a GPU)",
    ]


def test_a_run_that_was_killed(run: RunFolder) -> None:
    beat(run, "delta", owner=f"{(owner(1) or '').split()[0]} 4194399 1", pid=4194399)
    assert status_lines(run.path)[1:] == [
        "  small/idea/delta/r1: its process 4194399 is gone",
        "  `--mlr-resume` runs what has not come to its end",
    ]
    assert status_lines(run.path)[0].endswith("0 under way")


def test_a_case_that_is_run_again_counts_as_under_way(run: RunFolder) -> None:
    run.record(make_result("beta"))
    assert "3 of 6 cases are finished (2 pass, 1 not measured)" in status_lines(run.path)[0]
    beat(run, "beta")
    first = status_lines(run.path)[0]
    assert "2 of 6 cases are finished (1 pass, 1 not measured), 1 under way" in first


def test_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    run = make_run(tmp_path, not_run=["small/idea/alpha/r1"])
    assert status_lines(run.path) == [f"run {run.run_id}: 0 of 1 cases are finished, 0 under way"]


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with one_sentence(f"{tmp_path} is not a run folder"):
        status_lines(tmp_path)


def test_a_damaged_heartbeat_is_left_out(run: RunFolder) -> None:
    beat(run, "delta")
    (run.case_folder("idea", "delta", 1) / FILE).write_text('{"case": 7')
    assert len(status_lines(run.path)) == 1


def test_the_command(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(run.path)]) == 0
    assert capsys.readouterr().out == "\n".join(status_lines(run.path)) + "\n"
    assert main(["status", str(run.path / "cases")]) == 2
