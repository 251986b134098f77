"""``mlrbench tasks verify``, and what a run knows of its inputs before it begins."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import read_suite
from files import lay
from github_server import Published, make_listing

from pytest_mlrbench.cli import main
from pytest_mlrbench.fetching.listing import dump_listing, listing_path
from pytest_mlrbench.fetching.verify import check_files
from pytest_mlrbench.suites import loading
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite

Capture = pytest.CaptureFixture[str]
IDEA = "agent_results/ideas_and_proposals/{}/idea.md"
RUN = "agent_results/experiments_and_writeups/claude/{}/results"


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    made = Published(tmp_path / "catalogue")
    monkeypatch.setattr(loading, "shipped", lambda name: made.catalogue)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


@pytest.fixture
def checkout(published: Published, tmp_path: Path) -> Path:
    """The published repository, as git would lay it."""
    folder = tmp_path / "checkout"
    for path, data in published.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def verify(capsys: Capture, *words: str | Path) -> tuple[int, dict[str, list[str]], list[str]]:
    """Return the exit code, the table (input → columns) and the lines below it."""
    code = main(["tasks", "verify", *map(str, words)])
    out, err = capsys.readouterr()
    assert err == ""
    _, table, below = out.split("\n\n")
    rows = {line.split()[0]: line[17:].split() for line in table.splitlines()}
    return code, rows, below.splitlines()


def keep_listing(published: Published, folder: Path) -> None:
    """What a fetch has left beside the files."""
    source = load_suite("mlrbench", tasks_dir=folder).source
    assert source is not None
    blobs = {entry["path"]: entry["sha"] for entry in make_listing(published.files)["tree"]}  # type: ignore[attr-defined]
    needed = {path: blobs[path] for path in published.needed()}
    listing_path(source).write_bytes(dump_listing(source, needed))


# The command


def test_a_checkout_of_the_published_repository_is_good(checkout: Path, capsys: Capture) -> None:
    code, rows, below = verify(capsys, checkout)
    assert (code, below) == (0, ["5 of 5 task texts are as published, 0 changed, 0 absent"])
    assert rows == {
        "input": ["tasks", "files", "checked", "changed", "absent"],
        "task.md": ["5", "of", "5", "5", "5", "0", "0"],
        "idea.md": ["5", "of", "5", "5", "1", "0", "0"],
        "related_work.md": ["5", "of", "5", "5", "1", "0", "0"],
        "proposal.md": ["5", "of", "5", "5", "1", "0", "0"],
        "results": ["2", "of", "2", "8", "4", "0", "0"],
    }


def test_the_list_that_a_fetch_keeps_makes_all_files_known(
    published: Published, checkout: Path, capsys: Capture
) -> None:
    keep_listing(published, checkout)
    code, rows, _ = verify(capsys, checkout)
    assert code == 0
    assert all(row[3] == row[4] for row in list(rows.values())[1:])
    (checkout / IDEA.format("delta")).write_text("mine")
    code, rows, below = verify(capsys, checkout)
    assert (code, rows["idea.md"][-2:]) == (1, ["1", "0"])
    assert below[0].startswith(
        f"changed: {checkout / IDEA.format('delta')} is not the file of that commit (git blob "
    )


def test_the_shortened_spelling_is_read_too(checkout: Path, capsys: Capture) -> None:
    results = checkout / "agent_results"
    (results / "ideas_and_proposals").rename(checkout / "ideas_and_proposals")
    (results / "experiments_and_writeups").rename(checkout / "experiments")
    code, rows, _ = verify(capsys, checkout)
    assert (code, rows["idea.md"][:3]) == (0, ["5", "of", "5"])
    assert rows["results"] == ["2", "of", "2", "8", "4", "0", "0"]


@pytest.mark.parametrize(
    "path", ["tasks/beta.md", IDEA.format("alpha"), f"{RUN.format('alpha')}/curve.PNG"]
)
def test_a_changed_file_is_named_with_what_helps(
    checkout: Path, capsys: Capture, path: str
) -> None:
    (checkout / path).write_text("mine")
    code, _, below = verify(capsys, checkout)
    assert code == 1
    assert below[0].startswith(f"changed: {checkout / path} is not the published content (SHA-256 ")
    assert below[-1] == (
        f"`mlrbench tasks fetch --tasks-dir {checkout}` downloads what is changed or absent"
    )


def test_an_absent_text_fails(checkout: Path, capsys: Capture) -> None:
    (checkout / "tasks/beta.md").unlink()
    code, rows, below = verify(capsys, checkout)
    assert (code, rows["task.md"]) == (1, ["4", "of", "5", "4", "4", "0", "1"])
    assert below[:2] == [
        "no task.md: beta",
        "4 of 5 task texts are as published, 0 changed, 1 absent",
    ]


def test_absent_inputs_are_told_and_do_not_fail(checkout: Path, capsys: Capture) -> None:
    shutil.rmtree(checkout / "agent_results" / "ideas_and_proposals")
    (checkout / RUN.format("beta") / "results.md").unlink()
    code, rows, below = verify(capsys, checkout)
    assert (code, rows["idea.md"][-1], rows["results"][-1]) == (0, "5", "1")
    assert below[0] == "no idea.md: alpha, beta, gamma and 2 more (--verbose)"
    assert "no results: beta" in below
    below = verify(capsys, checkout, "--verbose")[2]
    assert below[0] == "no idea.md: alpha, beta, gamma, delta, epsilon"


def test_results_that_lack_a_figure_are_told(
    published: Published, checkout: Path, capsys: Capture
) -> None:
    keep_listing(published, checkout)
    figure = f"{RUN.format('beta')}/figures/recall@10 of all.png"
    (checkout / figure).unlink()
    code, _, below = verify(capsys, checkout)
    assert (code, below[0]) == (0, f"incomplete results: {figure}")


def test_a_file_that_cannot_be_read_is_named(checkout: Path, capsys: Capture) -> None:
    path = checkout / "tasks" / "beta.md"
    path.unlink()
    path.symlink_to(path.name)
    assert "no task.md: beta" in verify(capsys, checkout)[2]
    path.unlink()
    path.mkdir()
    assert "no task.md: beta" in verify(capsys, checkout)[2]


def test_without_a_folder_the_cache_is_looked_at(
    published: Published, tmp_path: Path, capsys: Capture
) -> None:
    code, _, below = verify(capsys)
    assert code == 1
    assert below[-2:] == [
        "0 of 5 task texts are as published, 0 changed, 5 absent",
        "`mlrbench tasks fetch` downloads what is changed or absent",
    ]


def test_a_smaller_suite_is_verified_alone(checkout: Path, capsys: Capture) -> None:
    (checkout / "tasks/gamma.md").unlink()
    code, rows, _ = verify(capsys, checkout, "--suite", "mlrbench-10")
    assert (code, rows["task.md"][:3]) == (0, ["2", "of", "2"])


def test_what_cannot_be_verified_is_refused(
    published: Published, tmp_path: Path, capsys: Capture
) -> None:
    lay(tmp_path / "own", {"a.md": "Do it."})
    for words, said in (
        (["nowhere"], "there is no folder"),
        (["--suite", "nope"], "there is no suite 'nope'"),
        (["--suite", f"path:{tmp_path / 'own'}"], "has its own texts and inputs"),
    ):
        assert main(["tasks", "verify", *words]) == 2
        assert said in capsys.readouterr().err


# At the start of a run


def loaded(folder: Path) -> Suite:
    return load_suite("mlrbench", tasks_dir=folder)


def test_inputs_as_published_are_no_fault(checkout: Path) -> None:
    suite = loaded(checkout)
    assert check_files(suite, suite.tasks, tuple(STAGES)) == []


def test_a_changed_input_is_one_sentence(checkout: Path) -> None:
    (checkout / IDEA.format("alpha")).write_text("mine")
    (checkout / "tasks" / "beta.md").write_text("mine")
    (checkout / RUN.format("alpha") / "log.txt").write_text("mine")
    suite = loaded(checkout)
    idea, log, text = sorted(check_files(suite, suite.tasks, tuple(STAGES)))
    assert idea.startswith(
        f"idea.md of task alpha in {checkout / IDEA.format('alpha')} is not the published content"
    )
    assert log.startswith("results/log.txt of task alpha in ")
    assert text.startswith("task.md of task beta in ")
    for sentence in (idea, log, text):
        assert sentence.endswith(f": `mlrbench tasks fetch --tasks-dir {checkout}` puts it right.")
        assert "\n" not in sentence


def test_only_the_inputs_of_the_chosen_tasks_and_stages_are_looked_at(checkout: Path) -> None:
    (checkout / IDEA.format("alpha")).write_text("mine")
    (checkout / "tasks" / "beta.md").write_text("mine")
    suite = loaded(checkout)
    alpha = [task for task in suite.tasks if task.id == "alpha"]
    assert check_files(suite, alpha, ["idea", "end_to_end"]) == []
    assert len(check_files(suite, alpha, ["proposal", "experiment"])) == 1


def test_what_is_absent_or_not_known_is_no_fault(checkout: Path) -> None:
    (checkout / IDEA.format("beta")).write_text("mine")
    (checkout / "tasks" / "beta.md").unlink()
    suite = loaded(checkout)
    assert check_files(suite, suite.tasks, tuple(STAGES)) == []


def test_a_suite_of_ones_own_may_know_its_texts(tmp_path: Path) -> None:
    lay(tmp_path, {"tasks/alpha.md": "Do it.", "inputs/alpha/idea.md": "idea"})
    suite = read_suite(tmp_path, "name: small\n", f"id,title,sha256\nalpha,Alpha,{'0' * 64}\n")
    (sentence,) = check_files(suite, suite.tasks, ["proposal"])
    assert sentence.startswith("task.md of task alpha ")
    assert "is not the published content" in sentence
    assert "fetch" not in sentence


def test_a_text_that_is_not_a_file_is_checked_too() -> None:
    suite = load_suite("mini")
    task = replace(suite.tasks[0], text="Do it.", sha256="0" * 64)
    (sentence,) = check_files(suite, [task], ["idea"])
    assert sentence.startswith(f"task.md of task {task.id} is not the published content")


# The real catalogue


def test_the_published_texts_that_are_here_are_good(capsys: Capture) -> None:
    if not (data := os.environ.get("MLRBENCH_DATA")):
        pytest.skip("MLRBENCH_DATA is not set: the published texts are not here")
    code, rows, below = verify(capsys, Path(data) / "mlrbench")
    assert code == 0
    assert rows["task.md"] == ["201", "of", "201", "201", "201", "0", "0"]
    for need in ("idea.md", "related_work.md", "proposal.md"):
        assert rows[need] == ["103", "of", "201", "103", "103", "0", "98"]
    assert rows["results"] == ["5", "of", "10", "68", "68", "0", "5"]
    assert below[-1] == "201 of 201 task texts are as published, 0 changed, 0 absent"
    suite = load_suite("mlrbench", tasks_dir=Path(data) / "mlrbench")
    assert check_files(suite, suite.tasks, tuple(STAGES)) == []
