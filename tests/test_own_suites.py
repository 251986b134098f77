"""A user's folder of Markdown files is a suite, and every fault in it is told."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from builders import lay, one_sentence
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.suites.choice import Choice, select_tasks
from pytest_mlrbench.suites.folder import read_folder
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.markdown import KEYS, read_task
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from conftest import Repository

FRONT = """---
title: Forgetting in small networks
category: memory
year: 2026
---

# Forgetting

How much does a small network forget?
"""
KNOWN = ", ".join(KEYS)
PLAIN = "# A plain task\n\nNothing is said of it.\n"
AGENT = """
import os, pathlib
workspace = pathlib.Path(os.environ["MLR_WORKSPACE"])
(workspace / "idea.md").write_text("# Idea\\n\\n" + (workspace / "task.md").read_text())
"""
#: A few lines that would grow to a billion words.
BOMB = (
    "name: x\na0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
    + "title: *a9\n"
)


def test_a_folder_of_markdown_files_is_a_suite(tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"forget.md": FRONT, "plain.md": PLAIN, "README.md": "# Ours"})
    suite = load_suite(f"path:{folder}")
    assert suite.name == "ours"
    assert [task.id for task in suite.tasks] == ["forget", "plain"]
    forget, plain = suite.tasks
    assert (forget.title, forget.category, forget.year) == (
        "Forgetting in small networks",
        "memory",
        "2026",
    )
    assert (plain.title, plain.category) == ("A plain task", "")


def test_the_agent_is_given_the_text_without_its_front_matter(repo: Repository) -> None:
    repo.lay({"ours/tasks/forget.md": FRONT, "ours/tasks/plain.md": PLAIN, "agent.py": AGENT})
    repo.run("--mlr-suite=path:ours", "--mlr-stage=idea", "--mlr-agent=cmd:python agent.py")
    texts = repo.texts("idea.md")
    body = "# Forgetting\n\nHow much does a small network forget?\n"
    assert texts == {"forget": f"# Idea\n\n{body}", "plain": f"# Idea\n\n{PLAIN}"}


def test_inputs_lie_beside_the_tasks(tmp_path: Path) -> None:
    files = {"tasks/a.md": PLAIN, "inputs/a/idea.md": "idea", "inputs/a/related_work.md": "work"}
    suite = load_suite(f"path:{lay(tmp_path / 'ours', files)}")
    assert suite.missing_inputs(suite.tasks[0], STAGES["proposal"]) == ()
    assert suite.missing_inputs(suite.tasks[0], STAGES["experiment"]) == ("proposal.md",)


def test_a_list_may_order_the_tasks_and_front_matter_is_still_no_part_of_the_text(
    tmp_path: Path,
) -> None:
    files = {"tasks/a.md": PLAIN, "tasks/b.md": FRONT, "tasks.csv": "id,title\nb,B\na,A\n"}
    suite = load_suite(f"path:{lay(tmp_path / 'ours', files)}")
    assert [task.title for task in suite.tasks] == ["B", "A"]
    assert "---" not in str(suite.inputs(suite.tasks[0], STAGES["idea"])["task.md"])


def test_a_change_of_the_text_changes_the_digests(tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"tasks/a.md": FRONT})
    before = load_suite(f"path:{folder}")
    lay(folder, {"tasks/a.md": FRONT.replace("How much", "Why")})
    after = load_suite(f"path:{folder}")
    assert before.digest != after.digest
    idea = STAGES["idea"]
    assert before.inputs_digest(before.tasks[0], idea) != after.inputs_digest(after.tasks[0], idea)


# Faults


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("---\ntitle: A: B\n---\nText.\n", "is not YAML: mapping values are not allowed"),
        ("---\ntitle: A: B\n---\nText.\n", "in line 2 (a value with a colon in it needs quotes)"),
        ("---\nyear: soon\n---\nText.\n", "in which 'year' is 'soon', not a year"),
        ("--- \ntitel: A\n---\nText.\n", "has front matter with 'titel'"),
        ("---\ntitle: !!bool foo\n---\nText.\n", "has front matter that is not YAML: "),
        ("---\ntitle: !!timestamp foo\n---\nText.\n", "has front matter that is not YAML: "),
        ("---\ncategory: no\n---\nText.\n", "in which 'category' is no text: put it in quotes"),
        ("---\ntitle: !!binary aGk=\n---\nText.\n", "in which 'title' is no text"),
        ("---\ncategory: a, b\n---\nText.\n", "in which 'category' has a comma"),
        ("---\nconference: a, b\n---\nText.\n", "in which 'conference' has a comma"),
        ("---\nyear: 2025\nyear: 2026\n---\nText.\n", "in which 'year' is there twice"),
        ("Text\0with a zero.\n", "holds binary data"),
        ("", "has no text"),
        ("---\ntitle: A\n---\n \n", "has no text"),
        ("---\ntitle: A\n\nText.\n", "has no second '---' to end the front matter"),
        ("---\ntitle: [A\n---\nText.\n", "has front matter that is not YAML"),
        ("---\nonly words\n---\nText.\n", "has front matter that is not of the form 'key: value'"),
        ("---\ntitel: A\n---\nText.\n", "has front matter with 'titel': known are title,"),
        ("---\ntitle: [a, b]\n---\nText.\n", "in which 'title' is no text"),
        ("---\ntitle: 010\n---\nText.\n", "in which 'title' is no text: put it in quotes"),
        ("---\ncategory: 1.10\n---\nText.\n", "in which 'category' is no text: put it in quotes"),
        ("---\nconference: 1:30\n---\nText.\n", "in which 'conference' is no text"),
        ("---\nyear: 0x7ea\n---\nText.\n", "in which 'year' is no text: put it in quotes"),
        ('---\ntitle: "A\\nB"\n---\nText.\n', "in which 'title' has a line break or a control"),
        ('---\nlink: "A\\e[31m"\n---\nText.\n', "in which 'link' has a line break or a control"),
        ("---\ntitle: |\n  A\n  B\n---\nText.\n", "in which 'title' has a line break"),
        ("# A \x1b[31mred one\n\nText.\n", "has a heading with a line break or a control"),
        ("# A\u202eB\n\nText.\n", "has a heading with a line break or a control"),
    ],
)
def test_a_fault_of_a_task_is_told_with_its_file(tmp_path: Path, text: str, fault: str) -> None:
    folder = lay(tmp_path / "ours", {"tasks/a.md": text})
    with one_sentence(f"{folder / 'tasks/a.md'} ", fault):
        load_suite(f"path:{folder}")


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    files = {
        "tasks/good.md": PLAIN,
        "tasks/empty.md": "",
        "tasks/twice-r2.md": PLAIN,
        "inputs/goood/idea.md": "of a task that is not there",
        "inputs/good/ideas.md": "not an input",
    }
    folder = lay(tmp_path / "ours", files)
    (folder / "tasks/latin.md").write_bytes("# Übung".encode("latin-1"))
    suite, faults = read_folder(folder)
    assert suite
    assert [task.id for task in suite.tasks] == ["good"]
    told = "\n".join(faults)
    for words in (
        "empty.md has no text",
        "latin.md is not UTF-8 text",
        "task id 'twice-r2' must",
        "goood holds inputs of a task that is not there",
        "ideas.md is no input of a stage: inputs are idea.md, proposal.md, related_work.md,",
    ):
        assert words in told
    assert len(faults) == 5
    with one_sentence("(and 4 more: `mlrbench tasks check`)"):
        load_suite(f"path:{folder}")


FAULTY_FRONT = "---\ncatgory: a\nyear: soon\ntitle: [A]\ncategory: a, b\nlink: x\nlink: y\n---\n"
FRONT_FAULTS = [
    f"with 'catgory': known are {KNOWN}",
    "in which 'link' is there twice",
    "in which 'title' is no text: put it in quotes",
    "in which 'year' is 'soon', not a year",
    "in which 'category' has a comma, which separates two",
]


def test_all_faults_of_one_front_matter_are_told(tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"a.md": f"{FAULTY_FRONT}\n", "b.md": PLAIN})
    _, faults = read_folder(folder)
    said = [f"has front matter {fault}" for fault in FRONT_FAULTS]
    assert list(faults) == [f"{folder / 'a.md'} {fault}" for fault in [*said, "has no text"]]


def test_all_faults_of_a_list_are_told_as_those_of_front_matter_are(tmp_path: Path) -> None:
    rows = ['a,A,"x, y",soon,"c, d",,', "b,,,2026,,,", "b,B,,,,,", "c,C,,20 26,,,", "e,E,,,,,,,"]
    table = "\n".join(["id,title,conference,year,category,Linkk,", *rows])
    files = {f"{name}.md": PLAIN for name in "abce"} | {"tasks.csv": f"{table}\n"}
    folder = lay(tmp_path / "ours", files)
    _, faults = read_folder(folder)
    path = folder / "tasks.csv"
    assert [fault.removeprefix(str(path)) for fault in faults] == [
        f"task list {path} has the column 'Linkk': call it 'link'",
        ":2 has a task in which 'year' is 'soon', not a year",
        ":2 has a task in which 'conference' has a comma, which separates two",
        ":2 has a task in which 'category' has a comma, which separates two",
        ":3: b has no title",
        ":4: task id 'b' is there twice",
        ":5 has a task in which 'year' is '20 26', not a year",
        ":6 has too many cells: quote a title with a comma",
    ]


def test_the_line_of_a_fault_is_the_one_its_row_begins_in(tmp_path: Path) -> None:
    """A cell may be of several lines, and lines without a cell may lie between the rows."""
    table = 'id,title,note\na,A,"one\ntwo\r\nthree"\n\nb,,\nc,"C\n\n",\nd-r2,D,"\n"\n'
    folder = lay(tmp_path / "ours", {f"{name}.md": PLAIN for name in "abc"})
    (folder / "tasks.csv").write_text(table, "utf-8", newline="")
    _, faults = read_folder(folder)
    assert [fault.removeprefix(str(folder / "tasks.csv"))[:8] for fault in faults] == [
        *(":6: b ha", ":7 has a", ":10: tas")
    ]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("", "it is empty"),
        ("id,title\n", "it has no task"),
        ("ID;Title\na;A\n", "it begins with 'ID;Title'"),
        ("a,A\n\x1b[31mb,B\n", "it begins with 'a,A'"),
        ("\x1b[31m\nb,B\n", r"it begins with '\x1b[31m'"),
    ],
)
def test_what_stands_in_place_of_a_header_is_said(tmp_path: Path, table: str, found: str) -> None:
    folder = lay(tmp_path / "ours", {"a.md": PLAIN, "tasks.csv": table})
    with one_sentence("needs a header with id,title and at least one task: ", found):
        load_suite(f"path:{folder}")


@pytest.mark.parametrize("head", ["id,title,title", "id,title,year,year"])
def test_a_column_that_is_there_twice_is_told(tmp_path: Path, head: str) -> None:
    folder = lay(tmp_path / "ours", {"a.md": PLAIN, "tasks.csv": f"{head}\na,A\n"})
    with one_sentence(f"tasks.csv has the column '{head.rpartition(',')[2]}' twice"):
        load_suite(f"path:{folder}")


def test_a_fault_hides_none_in_another_file(tmp_path: Path) -> None:
    files = {
        "suite.yml": "name: ours\n",
        "suite.yaml": "nome: ours\ntitle: [Ours]\ntitle: Our\nbenchmark: 7\n",
        "tasks/a.md": "---\nyear: soon\n---\nText.\n",
        "tasks/b-r2.md": "",
        "tasks.csv": "id,title,year\na,A,then\n",
        "inputs/a/results/paper.md": "x",
        "inputs/a/results/figure.png": "x",
    }
    folder = lay(tmp_path / "ours", files)
    for name in ("one", "two"):
        (folder / "inputs/a/results" / name).symlink_to(folder / "suite.yml")
    _, faults = read_folder(folder)
    for words in (
        "suite.yml must be called suite.yaml",
        "suite.yaml has the key 'title' twice",
        "suite.yaml needs a 'name' made of letters,",
        "suite.yaml: 'benchmark' needs a 'name' and a number",
        "suite.yaml has the unknown key 'nome'",
        "a.md has front matter in which 'year' is 'soon'",
        "task id 'b-r2' must",
        "b-r2.md has no text",
        "tasks.csv:2 has a task in which 'year' is 'then'",
        "results must be a folder with a results.md",
        "results holds a paper.md",
        "results holds the link one",
        "results holds the link two",
    ):
        assert sum(words in fault for fault in faults) == 1, words
    assert len(faults) == 13


def test_a_fault_in_a_text_or_list_is_not_told_as_an_absent_one_too(tmp_path: Path) -> None:
    files = {"a.md": "", "b.md": PLAIN, "tasks.csv": "id,title\na,A\nb,\n"}
    folder = lay(tmp_path / "ours", files)
    _, faults = read_folder(folder)
    assert list(faults) == [
        f"{folder / 'a.md'} has no text",
        f"{folder / 'tasks.csv'}:3: b has no title",
    ]


def test_a_text_that_the_list_leaves_out_is_told(tmp_path: Path) -> None:
    files = {"tasks/a.md": PLAIN, "tasks/b.md": PLAIN, "tasks.csv": "id,title\na,A\n"}
    with one_sentence("does not list the task in b.md"):
        load_suite(f"path:{lay(tmp_path / 'ours', files)}")


def test_a_folder_whose_name_is_no_name_needs_a_suite_file(tmp_path: Path) -> None:
    folder = lay(tmp_path / "our tasks", {"a.md": PLAIN})
    with one_sentence("'our tasks' cannot name a suite", "add a suite.yaml"):
        load_suite(f"path:{folder}")
    lay(folder, {"suite.yaml": "name: ours\n"})
    assert load_suite(f"path:{folder}").name == "ours"


@given(st.text(alphabet=st.sampled_from("-:#a \n[]{}'\"é\t"), max_size=60))
def test_whatever_a_file_holds_it_is_a_task_or_a_fault(text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "task.md"
        path.write_text(text, "utf-8", newline="")
        with contextlib.suppress(ValueError):
            task = read_task(path)
            assert task.title
            assert task.text
            assert task.text.strip()


# What a fault is not


def test_a_fault_of_a_task_is_told_once(tmp_path: Path) -> None:
    files = {"a.md": "---\ntitel: A\n---\nText.\n", "inputs/a/idea.md": "idea"}
    _, faults = read_folder(lay(tmp_path / "ours", files))
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"inputs/a/results/figure.png": "x"}, "results must be a folder with a results.md"),
        ({"inputs/a/results": "x"}, "results must be a folder with a results.md"),
        ({"inputs/a/proposal.md": ""}, "proposal.md has no text"),
        ({"inputs/a/idea.md/x": "x"}, "idea.md is no regular file"),
        ({"inputs/a/results/results.md": " "}, "has a results.md that has no text"),
        (
            {"inputs/a/results/results.md": "x", "inputs/a/results/paper.md": "x"},
            "results holds a paper.md, which is what the stage paper is to write",
        ),
        ({"b.MD": PLAIN}, "b.MD must end with .md to be a task"),
        ({"b.markdown": PLAIN}, "b.markdown must end with .md to be a task"),
        ({"tasks/sub/b.md": PLAIN}, "sub is a folder: tasks lie in"),
        ({"suite.yml": "name: ours"}, "suite.yml must be called suite.yaml"),
        ({"tasks.csv": "id,title\na,\n"}, "tasks.csv:2: a has no title"),
        ({"suite.yaml": "name: !!bool foo"}, "suite.yaml cannot be read"),
        ({"suite.yaml": "name: ours\ntitel: Ours\n"}, "has the unknown key 'titel': known are"),
        ({"suite.yaml": "name: ours\ntitle: [Ours]\n"}, "'title' is no text: put it in quotes"),
        ({"suite.yaml": "name: 010\n"}, "suite.yaml: 'name' is no text: put it in quotes"),
        ({"suite.yaml": "name: yes\n"}, "suite.yaml: 'name' is no text: put it in quotes"),
        ({"suite.yaml": "name: 1.10\n"}, "suite.yaml: 'name' is no text: put it in quotes"),
        ({"suite.yaml": "name: 1_0\n"}, "suite.yaml: 'name' is no text: put it in quotes"),
        ({"suite.yaml": 'name: a\ntitle: "\\e[1mA"\n'}, "'title' has a line break or a control"),
        (
            {"suite.yaml": "name: a\nbenchmark: {name: [A], tasks: 3}\n"},
            "'benchmark' needs a 'name'",
        ),
        (
            {"suite.yaml": "name: a\nbenchmark: {name: no, tasks: 3}\n"},
            "'benchmark' needs a 'name'",
        ),
        ({"suite.yaml": "name: a\nbenchmark: {name: A, tasks: 0203}\n"}, "'benchmark' needs a"),
        ({"suite.yaml": 'name: a\nbenchmark: {name: "A\\n", tasks: 3}\n'}, "'benchmark' needs a"),
        (
            {"suite.yaml": "name: a\nbenchmark:\n  name: A\n  tasks: 3\n  tasks: 30\n"},
            "has the key 'benchmark.tasks' twice",
        ),
        ({"tasks.csv": 'id,title\na,"A\nB"\n'}, "has a task in which 'title' has a line break"),
        ({"tasks.csv": "id,title\na,A\x1b[31m\n"}, "has a task in which 'title' has a line break"),
        ({"suite.yaml": BOMB}, "cannot be read: the alias *a0 has no place here: write it out"),
        ({"beta.md": f"---\n{BOMB}---\ntext\n"}, "the alias *a0 has no place here: write it out"),
        ({"suite.yaml": "name: mini\n"}, "has the name 'mini', which is a shipped suite's"),
        ({"tasks.csv": "id,title\na,A\nb,B\n"}, "lists the task b, and there is no b.md"),
        ({"tasks/b.md": PLAIN}, "a.md lies beside the folder tasks: move it into it"),
    ],
)
def test_what_would_be_lost_without_a_word_is_a_fault(
    tmp_path: Path, files: dict[str, str], fault: str
) -> None:
    folder = lay(tmp_path / "ours", {"a.md": PLAIN, "README.md": "# Ours"} | files)
    with one_sentence(fault):
        load_suite(f"path:{folder}")


def test_links_among_the_inputs_are_told(tmp_path: Path) -> None:
    files = {"a.md": PLAIN, "inputs/a/results/results.md": "x", "elsewhere/figure.png": "x"}
    folder = lay(tmp_path / "ours", files)
    (folder / "inputs/a/results/figures").symlink_to(folder / "elsewhere")
    with one_sentence("holds the link figures: put the file itself there"):
        load_suite(f"path:{folder}")
    (folder / "inputs/a/results/figures").unlink()
    (folder / "inputs/a/idea.md").symlink_to(folder / "a.md")
    with one_sentence("idea.md is a link: put the file itself there"):
        load_suite(f"path:{folder}")


def test_what_editors_and_projects_leave_is_no_task(tmp_path: Path) -> None:
    files = {"tasks/a.md": PLAIN, "tasks/README.md": "# How", "tasks/._a.md": "\0"}
    files["CHANGELOG.md"] = "# Changes"
    suite = load_suite(f"path:{lay(tmp_path / 'ours', files)}")
    assert [task.id for task in suite.tasks] == ["a"]


def test_a_pipe_is_no_task(tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"a.md": PLAIN})
    os.mkfifo(folder / "b.md")
    with one_sentence("b.md is no regular file"):
        load_suite(f"path:{folder}")


def test_a_list_that_a_spreadsheet_wrote_is_read(tmp_path: Path) -> None:
    folder = lay(tmp_path / "ours", {"tasks.csv": "\ufeffid,title\na,A\n"})
    assert [task.title for task in load_suite(f"path:{folder}").tasks] == ["A"]


def test_a_category_may_have_spaces(repo: Repository) -> None:
    task = "---\ncategory: {}\n---\nText.\n"
    files = {"ours/a.md": task.format("reinforcement learning"), "ours/b.md": task.format("vision")}
    repo.lay(files | {"pytest.ini": "[pytest]\nmlr_category = 'reinforcement learning'\n"})
    words = (
        "--mlr-stage=idea",
        "--mlr-suite=path:ours",
        "--mlr-agent=null",
        "--collect-only",
        "-q",
    )
    repo.run(*words).stdout.fnmatch_lines(["1 test collected*"])
    both = repo.run(*words, "--mlr-category=vision, reinforcement learning")
    both.stdout.fnmatch_lines(["2 tests collected*"])


def test_near_duplicates_that_nobody_knows_of_cannot_be_left_out(tmp_path: Path) -> None:
    suite = load_suite(f"path:{lay(tmp_path / 'ours', {'a.md': PLAIN, 'b.md': PLAIN})}")
    with one_sentence("--mlr-distinct: suite 'ours' knows of no near-duplicates"):
        select_tasks(suite, Choice(distinct=True))


def test_a_task_that_is_gone_makes_a_resumed_run_mixed(repo: Repository) -> None:
    repo.lay({"ours/a.md": PLAIN, "ours/b.md": PLAIN + "More.\n"})
    words = ("--mlr-stage=idea", "--mlr-suite=path:ours", "--mlr-agent=null")
    repo.run(*words)
    (repo.path / "ours/b.md").rename(repo.path / "ours/c.md")
    result = repo.run(*words, "--mlr-resume")
    result.stdout.fnmatch_lines(
        ["*on suite ours: 3 tasks*", "  MIXED: results of 2 different states of the suite*"]
    )


def test_where_some_tasks_have_their_inputs_those_are_measured(repo: Repository) -> None:
    agent = "import pathlib\npathlib.Path('proposal.md').write_text('# Proposal\\n\\nText.')\n"
    inputs = {"ours/inputs/a/idea.md": "idea", "ours/inputs/a/related_work.md": "work"}
    repo.lay({"ours/a.md": PLAIN, "ours/b.md": PLAIN, "agent.py": agent} | inputs)
    words = ("--mlr-stage=proposal", "--mlr-suite=path:ours", "--mlr-agent=cmd:python agent.py")
    result = repo.run(*words)
    result.stdout.fnmatch_lines(
        ["mlrbench: 1 of 2 cases lack inputs, *: add *ours/inputs/b/idea.md, *related_work.md"]
    )
    summary = repo.report.summary[0]
    assert (summary.scored, summary.not_measured_causes) == (1, {"no_inputs": 1})
    run = f".mlrbench/runs/{repo.runs[0].run_id}"
    hint = "  add the inputs that are missing; then `{}` measures the cases that lack them"
    result.stdout.fnmatch_lines([hint.format(f"--mlr-resume={run}")])
    repo.lay({name.replace("/a/", "/b/"): text for name, text in inputs.items()})
    repo.run(*words, f"--mlr-resume={run}")
    assert repo.report.summary[0].scored == 2


def test_a_hint_names_the_suite_as_it_was_written(tmp_path: Path) -> None:
    suite = load_suite(f"path:{lay(tmp_path / 'ours', {'a.md': PLAIN})}")
    with one_sentence(f"`mlrbench tasks list --suite path:{tmp_path / 'ours'}`"):
        select_tasks(suite, Choice(tasks=("b",)))
