"""Suites: those that ship, those made of two files, and one sentence for each fault in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import lay, one_sentence, read_suite, write_suite

from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.loading import load_suite, suite_names
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, Task, share

TEN = (
    "iclr2025_bi_align",
    "iclr2025_buildingtrust",
    "iclr2025_data_problems",
    "iclr2025_dl4c",
    "iclr2025_mldpr",
    "iclr2025_question",
    "iclr2025_scope",
    "iclr2025_scsl",
    "iclr2025_verifai",
    "iclr2025_wsl",
)


def with_id(folder: Path, task_id: str) -> Suite:
    return read_suite(folder, "name: own\n", f'id,title\nfirst,First\n"{task_id}",Title\n')


# Those that ship


def test_the_shipped_suites() -> None:
    assert suite_names() == ("mini", "mlrbench", "mlrbench-10")


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_is_named_like_its_folder(name: str) -> None:
    suite = load_suite(name)
    assert suite.name == name
    assert suite.title
    assert suite.description
    assert all(task.title for task in suite.tasks)


def test_mini_has_six_tasks_and_is_no_part_of_the_benchmark() -> None:
    mini = load_suite("mini")
    assert len(mini.tasks) == 6
    assert mini.benchmark is None
    assert share(6, len(mini.tasks), mini.benchmark) == "6 tasks, not part of MLR-Bench"


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
@pytest.mark.parametrize("task", load_suite("mini").tasks, ids=lambda task: task.id)
def test_mini_has_the_inputs_of_every_stage(task: Task, stage: object) -> None:
    mini = load_suite("mini")
    assert mini.missing_inputs(task, stage) == ()
    assert all(path.stat().st_size for path in mini.inputs(task, stage).values())


def test_mlrbench_is_the_201_tasks() -> None:
    suite = load_suite("mlrbench")
    assert len(suite.tasks) == 201
    assert share(201, len(suite.tasks), suite.benchmark) == "all 201 tasks of MLR-Bench"


def test_mlrbench_10_is_the_ten_with_experiments() -> None:
    suite = load_suite("mlrbench-10")
    assert tuple(task.id for task in suite.tasks) == TEN
    assert share(10, len(suite.tasks), suite.benchmark) == "10 of the 201 tasks of MLR-Bench"
    assert set(suite.tasks) <= set(load_suite("mlrbench").tasks)


def test_the_texts_of_the_201_are_not_shipped() -> None:
    suite = load_suite("mlrbench")
    assert suite.missing_inputs(suite.tasks[0], STAGES["idea"]) == ("task.md",)


def test_an_unknown_suite_is_told_the_shipped_ones() -> None:
    with one_sentence("'mlr-bench'", "mini, mlrbench, mlrbench-10", "path:DIR"):
        load_suite("mlr-bench")


@pytest.mark.parametrize("spec", ["", ".", "..", "mini/", "../suites/mini"])
def test_a_shipped_suite_is_given_by_its_name_only(spec: str) -> None:
    with one_sentence(repr(spec)):
        load_suite(spec)


# A folder of one's own


def test_two_files_are_a_suite(tmp_path: Path) -> None:
    suite = read_suite(
        tmp_path, "name: own", "id,title,conference,year\nfirst,One,ICLR,2025\n2.b_c-D,Two,,\n"
    )
    assert suite.name == suite.title == "own"
    assert suite.tasks == (Task("first", "One", "ICLR", "2025"), Task("2.b_c-D", "Two"))
    assert share(2, 2, suite.benchmark) == "2 tasks, not part of MLR-Bench"


def test_a_suite_may_be_a_share_of_a_benchmark(tmp_path: Path) -> None:
    suite = read_suite(tmp_path, "name: own\ntitle: Ours\nbenchmark: {name: Theirs, tasks: 40}\n")
    assert suite.title == "Ours"
    assert share(1, 1, suite.benchmark) == "1 of the 40 tasks of Theirs"


def test_columns_may_be_in_any_order_and_more_than_needed(tmp_path: Path) -> None:
    suite = read_suite(tmp_path, "name: own", 'year,note,title,id\n2024,x,"A, B",first\n')
    assert suite.tasks == (Task("first", "A, B", "", "2024"),)


def test_a_relative_path_is_relative_to_the_base(tmp_path: Path) -> None:
    write_suite(tmp_path / "suites" / "own")
    assert load_suite("path:suites/own", tmp_path).folder == tmp_path / "suites" / "own"


def test_inputs_are_found_by_their_names(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "tasks/alpha.md": "task",
            "inputs/alpha/idea.md": "idea",
            "inputs/alpha/results/results.md": "results",
            "inputs/alpha/results/figures/one.png": "figure",
        },
    )
    suite = read_suite(tmp_path)
    alpha, paper = suite.tasks[0], STAGES["paper"]
    assert suite.inputs(alpha, paper) == {
        "task.md": "task",
        "idea.md": tmp_path / "inputs" / "alpha" / "idea.md",
        "results/figures/one.png": tmp_path / "inputs/alpha/results/figures/one.png",
        "results/results.md": tmp_path / "inputs/alpha/results/results.md",
    }
    assert suite.missing_inputs(alpha, paper) == ("related_work.md", "proposal.md")
    assert suite.missing_inputs(alpha, STAGES["idea"]) == ()


def test_the_digest_changes_with_the_tasks_and_their_texts(tmp_path: Path) -> None:
    plain = read_suite(tmp_path).digest
    lay(tmp_path, {"tasks/alpha.md": "task"})
    with_text = read_suite(tmp_path).digest
    renamed = read_suite(tmp_path, "name: small\n", "id,title\nalpha,Beta\n").digest
    assert len({plain, with_text, renamed}) == 3
    assert read_suite(tmp_path).digest == with_text


# Faults


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    with one_sentence("there is no task in", str(tmp_path), "a Markdown file there"):
        load_suite(f"path:{tmp_path}")
    with one_sentence("there is no folder", "nowhere"):
        load_suite(f"path:{tmp_path / 'nowhere'}")


def test_a_home_folder_that_does_not_exist_is_refused() -> None:
    with one_sentence("~nobody-of-this-name"):
        load_suite("path:~nobody-of-this-name/suite")


def test_a_task_list_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (write_suite(tmp_path) / "tasks.csv").unlink()
    (tmp_path / "tasks.csv").mkdir()
    with one_sentence("tasks.csv cannot be read"):
        load_suite(f"path:{tmp_path}")


@pytest.mark.parametrize(
    "about",
    ["name: [", "name: {a: b", "\tname: own", "name: 'own", "name: !!python/none x", "name: \x07"],
)
def test_broken_yaml_is_one_sentence(tmp_path: Path, about: str) -> None:
    with one_sentence("suite.yaml cannot be read"):
        read_suite(tmp_path, about)


@pytest.mark.parametrize("about", ["name: 2024-13-45", "name: own\ntitle: 2024-02-30"])
def test_a_date_that_is_none_is_one_sentence(tmp_path: Path, about: str) -> None:
    with one_sentence("suite.yaml"):
        read_suite(tmp_path, about)


def test_yaml_that_is_not_utf_8_is_one_sentence(tmp_path: Path) -> None:
    (write_suite(tmp_path) / "suite.yaml").write_bytes("name: ü".encode("latin-1"))
    with one_sentence("suite.yaml cannot be read"):
        load_suite(f"path:{tmp_path}")


@pytest.mark.parametrize(
    "about",
    ["", "title: Own", "- name: own", "own", "name:", "name: ''", "name: a b", "name: a/b"],
)
def test_a_suite_needs_a_name(tmp_path: Path, about: str) -> None:
    with one_sentence("suite.yaml needs a 'name'"):
        read_suite(tmp_path, about)


@pytest.mark.parametrize("written", ["2024", "1.5"])
def test_a_name_that_looks_like_a_number_is_a_name(tmp_path: Path, written: str) -> None:
    assert read_suite(tmp_path, f"name: {written}").name == written


@pytest.mark.parametrize(
    "benchmark",
    [
        "Theirs",
        "{}",
        "[]",
        "{name: Theirs}",
        "{tasks: 40}",
        "{name: Theirs, tasks: many}",
        "{name: Theirs, tasks: 4.5}",
        "{name: Theirs, tasks: '40'}",
        "{name: Theirs, tasks: true}",
        "{name: Theirs, tasks: -1}",
        "false",
    ],
)
def test_a_malformed_benchmark_is_refused(tmp_path: Path, benchmark: str) -> None:
    with one_sentence("'benchmark' needs a 'name' and a number of 'tasks'"):
        read_suite(tmp_path, f"name: own\nbenchmark: {benchmark}")


@pytest.mark.parametrize(
    "tasks", ["", "id,title\n", "alpha,Alpha\n", "id\nalpha\n", "id;title\nalpha;Alpha\n"]
)
def test_a_task_list_needs_a_header_and_a_task(tmp_path: Path, tasks: str) -> None:
    with one_sentence("tasks.csv needs a header with id,title"):
        read_suite(tmp_path, "name: own", tasks)


def test_a_task_list_that_is_not_utf_8_is_one_sentence(tmp_path: Path) -> None:
    (write_suite(tmp_path) / "tasks.csv").write_bytes("id,title\nalpha,ü\n".encode("latin-1"))
    with one_sentence("tasks.csv cannot be read"):
        load_suite(f"path:{tmp_path}")


def test_a_title_with_a_comma_outside_quotes_is_refused(tmp_path: Path) -> None:
    """Else the rest of the title would silently become the conference."""
    with one_sentence("tasks.csv:2"):
        read_suite(tmp_path, "name: own", "id,title,conference,year\na,One, two,ICLR,2025\n")


@pytest.mark.parametrize("task_id", ["a", "0", "_a", "a.b", "A-b_c.9", "a-r", "a-r2b", "r2"])
def test_a_plain_id_is_taken(tmp_path: Path, task_id: str) -> None:
    assert with_id(tmp_path, task_id).tasks[1].id == task_id


@pytest.mark.parametrize(
    "task_id",
    [
        "",
        " ",
        ".",
        "..",
        ".a",
        "-a",
        "a/b",
        "../a",
        "a\\b",
        "a b",
        " a",
        "a\n",
        "a:b",
        "a[b]",
        "a*",
        "a::b",
        "ü",
        "a\u200b",
        "x-r2",
        "x-r10",
    ],
)
def test_an_odd_id_is_refused_with_its_line(tmp_path: Path, task_id: str) -> None:
    with one_sentence("tasks.csv:3", repr(task_id)):
        with_id(tmp_path, task_id)


@pytest.mark.parametrize("task_id", ["first", "FIRST", "First"])
def test_ids_differ_by_more_than_case(tmp_path: Path, task_id: str) -> None:
    with one_sentence("tasks.csv:3", repr(task_id), "twice"):
        with_id(tmp_path, task_id)


# What ships beside the suites


def test_every_shipped_folder_is_there() -> None:
    for name in ("benchmarks", "rubrics", "fixtures"):
        assert shipped(name).is_dir()
