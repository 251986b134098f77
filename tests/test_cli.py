"""The command ``mlrbench``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import NO_REVIEW, lay, make_result, make_run, write_suite

import pytest_mlrbench
from pytest_mlrbench.cli import main

Capture = pytest.CaptureFixture[str]


def told(capsys: Capture, *words: str | Path) -> list[str]:
    """Run a command that must do well; return its lines."""
    assert main([str(word) for word in words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def refused(capsys: Capture, *words: str | Path) -> str:
    """Run a command that must be refused; return its one sentence."""
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mlrbench: ")
    return err


# tasks


def test_the_suites_are_listed_with_their_share(capsys: Capture) -> None:
    lines = told(capsys, "tasks", "list")
    assert [line.split()[0] for line in lines] == ["mini", "mlrbench", "mlrbench-10"]
    assert "6 tasks, not part of MLR-Bench" in lines[0]
    assert "all 201 tasks of MLR-Bench" in lines[1]
    assert "10 of the 201 tasks of MLR-Bench" in lines[2]


def test_the_tasks_of_a_suite_are_listed_with_their_number(capsys: Capture) -> None:
    *tasks, last = told(capsys, "tasks", "list", "--suite", "mlrbench-10")
    assert len(tasks) == 10
    assert tasks[0].startswith("iclr2025_bi_align ")
    assert "iclr 2025" in tasks[0].lower()
    assert last == "10 tasks in suite mlrbench-10"


def test_a_suite_of_ones_own_is_listed(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path / "own", "name: own\n", "id,title\nfirst,One\nsecond,Two\n")
    monkeypatch.chdir(tmp_path)
    lines = told(capsys, "tasks", "list", "--suite", "path:own")
    assert [line.split()[0] for line in lines] == ["first", "second", "2"]


def test_a_task_is_shown_with_its_text_and_inputs(capsys: Capture, tmp_path: Path) -> None:
    write_suite(tmp_path, "name: own\n", "id,title,conference,year\nfirst,One,ICLR,2025\n")
    lay(tmp_path, {"tasks/first.md": "# One\n\nDo it.\n", "inputs/first/idea.md": "idea"})
    lines = told(capsys, "tasks", "show", "first", "--suite", f"path:{tmp_path}")
    assert lines[:2] == ["first: One", "ICLR 2025"]
    state = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  ")}
    assert state == {
        "idea": "inputs there",
        "proposal": "missing related_work.md",
        "experiment": "missing related_work.md, proposal.md",
        "paper": "missing related_work.md, proposal.md, results",
        "end_to_end": "inputs there",
    }
    assert lines[-3:] == ["# One", "", "Do it."]


def test_a_task_without_text_says_so(capsys: Capture) -> None:
    lines = told(capsys, "tasks", "show", "iclr2025_wsl", "--suite", "mlrbench")
    assert lines[-1] == "The text is not here: `mlrbench tasks fetch --stage idea` downloads it."


def test_the_bundled_suite_is_shown_without_naming_it(capsys: Capture) -> None:
    assert told(capsys, "tasks", "show", "label_noise_wine")[0].startswith("label_noise_wine: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tasks", "list", "--suite", "mlrbensh"], "no suite 'mlrbensh'"),
        (["tasks", "list", "--suite", "path:nowhere"], "there is no folder"),
        (["tasks", "show", "label_noise"], "Did you mean label_noise_wine?"),
        (["tasks", "show", "iclr2025_wls"], "Did you mean iclr2025_wsl or"),
        (["tasks", "show", "x", "--suite", "nope"], "no suite 'nope'"),
        (["report", "nowhere"], "is not a run folder"),
    ],
)
def test_what_is_unknown_is_refused_in_one_sentence(
    capsys: Capture, words: list[str], said: str
) -> None:
    assert said in refused(capsys, *words)


@pytest.mark.parametrize(
    "words",
    [[], ["frobnicate"], ["tasks"], ["tasks", "hide"], ["tasks", "show"], ["report"], ["--suite"]],
    ids=" ".join,
)
def test_an_unknown_command_exits_with_2(capsys: Capture, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: mlrbench")


def test_the_version(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-mlrbench {pytest_mlrbench.__version__}\n"


# published


def test_the_published_systems_are_listed_as_agent_specs(capsys: Capture) -> None:
    lines = told(capsys, "published", "list")
    specs = [line.split()[0] for line in lines if line.startswith("published:")]
    assert len(specs) == 13
    assert "published:claude-code" in specs
    (wanted,) = (line for line in lines if line.startswith("published:o4-mini-2025-04-16"))
    assert wanted.endswith("idea (201), proposal (201), paper (10)")


def test_every_published_mean_is_recomputed(capsys: Capture) -> None:
    text = "\n".join(told(capsys, "published", "check"))
    assert "236 of 236" in text
    assert "14 of 14" in text
    assert "128 of 128" in text
    assert "differs" not in text


# report


def test_a_report_is_rebuilt_from_the_folder(capsys: Capture, tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "runs",
        make_result("a"),
        make_result("b", judges={"anna": 2}),
        make_result("c", fault=NO_REVIEW),
        not_run=["small/idea/d/r1"],
    )
    files = tmp_path / "new" / "junit.xml", tmp_path / "new" / "report.json"
    lines = told(capsys, "report", run.path, "--junit", files[0], "--json", files[1])
    (row,) = (line.split() for line in lines if line.startswith("idea "))
    assert row == ["idea", "2/4", "1", "1", "2", "4.50", "-"]
    suite = ET.parse(files[0]).getroot().find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("4", "2")
    document = json.loads(files[1].read_text("utf-8"))
    assert document["run"]["run"] == run.run_id
    assert document["not_run"] == ["small/idea/d/r1"]


@pytest.mark.parametrize("option", ["--junit", "--json"])
def test_a_report_that_cannot_be_written_is_one_sentence(
    capsys: Capture, tmp_path: Path, option: str
) -> None:
    run = make_run(tmp_path, make_result())
    lay(tmp_path, {"file": ""})
    assert main(["report", str(run.path), option, str(tmp_path / "file" / "report")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("mlrbench: ")


def test_the_rubrics_are_listed_by_stage(capsys: Capture) -> None:
    lines = told(capsys, "rubrics")
    assert len(lines) == 10
    assert lines[0].split()[:2] == ["idea", "idea"]
    assert "soundness, insightfulness, significance, overall" in lines[4]
    assert "checklist" in lines[5]


# what is known of the 201


def test_categories_are_counted_beside_the_published_numbers(capsys: Capture) -> None:
    head, *rows, total, last = told(
        capsys, "tasks", "list", "--suite", "mlrbench", "--by", "category"
    )
    assert head.split() == ["category", "tasks", "published"]
    assert "ml_theory 50 32" in [" ".join(row.split()) for row in rows]
    assert len(rows) == 9
    assert total.split() == ["all", "201", "201"]
    assert "our labels" in last


def test_a_part_of_the_benchmark_has_no_published_counts(capsys: Capture) -> None:
    head, *_ = told(capsys, "tasks", "list", "--suite", "mlrbench-10", "--by", "category")
    assert head.split() == ["category", "tasks"]


def test_tasks_without_the_property_are_counted_too(capsys: Capture) -> None:
    lines = told(capsys, "tasks", "list", "--suite", "mini", "--by", "year")
    assert [line.split() for line in lines[1:]] == [["(none)", "6"], ["all", "6"]]


def test_a_task_is_shown_with_its_page_and_its_twin(capsys: Capture) -> None:
    lines = told(capsys, "tasks", "show", "neurips2024_opt", "--suite", "mlrbench")
    assert "category: ml_theory" in lines
    assert "page: https://opt-ml.org/" in lines
    assert "nearly the same text: neurips2023_opt" in lines
    assert lines[-1] == "The text is not here: `mlrbench tasks fetch --stage idea` downloads it."


# a folder of one's own


def test_a_folder_is_checked(capsys: Capture, tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"a.md": "# A\n\nText.\n", "inputs/a/idea.md": "idea"})
    lay(folder, {"inputs/a/related_work.md": "work", "tasks.csv": "id,title\na,A\n"})
    assert told(capsys, "tasks", "check", folder) == [
        "suite ours: 1 task, no faults",
        "  idea        1 of 1 have all inputs",
        "  proposal    1 of 1 have all inputs",
        "  experiment  0 of 1 have all inputs",
        "  paper       0 of 1 have all inputs",
        "  end_to_end  1 of 1 have all inputs",
    ]


def test_every_fault_of_a_folder_is_told(capsys: Capture, tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"a.md": "", "b.md": "---\nname: B\n---\nText.\n"})
    assert main(["tasks", "check", str(folder)]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.endswith("a.md has no text.")
    assert "b.md has front matter with 'name': known are title, " in second
    assert last == f"2 faults in {folder}"


def test_a_file_in_place_of_a_folder_is_told_for_what_it_is(
    capsys: Capture, tmp_path: Path
) -> None:
    path = lay(tmp_path, {"a.md": "# A\n\nText.\n"}) / "a.md"
    assert main(["tasks", "check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path} is a file: name a folder.",
        f"1 fault in {path}",
    ]
    told = f"{path} is a file: name a folder."
    assert told in refused(capsys, "tasks", "list", "--suite", f"path:{path}")
    assert told in refused(capsys, "tasks", "show", "iclr2025_wsl", "--tasks-dir", path)
    assert told in refused(capsys, "tasks", "verify", path)
