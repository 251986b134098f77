"""What lies in a folder that an agent filled: however deep, linked or hollow, it does no harm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from builders import lay

from pytest_mlrbench import folders
from pytest_mlrbench.cli_judge import words
from pytest_mlrbench.judges.check_files import Submission
from pytest_mlrbench.judges.reading import Files
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.submission import SubmissionRecord, digest_of, is_unchanged, stamp_of
from pytest_mlrbench.sandbox import ownership
from pytest_mlrbench.sandbox.container_options import Account
from pytest_mlrbench.sandbox.tree import snapshot
from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from conftest import Repository

IDEA = "echo '# An idea' > idea.md\n"
GIB = 2**30


def nest(place: Path, levels: int) -> None:
    """Make folders in one another: deeper than recursion goes, and longer than a path may be."""
    folder = os.open(place, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("last.py", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


NEST = """
import os
for _ in range({levels}):
    os.mkdir("d")
    os.chdir("d")
open("last.py", "w").write("import os")
"""


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path, repo: Repository) -> Iterator[None]:
    """Python would remove deep folders by recursion."""
    yield
    subprocess.run(["rm", "-rf", repo.path / ".mlrbench", *tmp_path.iterdir()], check=True)


# Depth


@pytest.mark.parametrize("levels", [1000, 5000])
def test_judges_list_files_however_deep(tmp_path: Path, levels: int) -> None:
    lay(tmp_path, {"idea.md": "# Idea", "z/late.py": "import os", ".hidden/x.py": ""})
    nest(tmp_path, levels)
    reached = {"/".join(["d"] * 1000 + ["last.py"])} if levels == 1000 else set()
    assert set(Submission("idea", tmp_path).files) == {"idea.md", "z/late.py", *reached}
    assert set(Files(tmp_path, STAGES["idea"]).names) == {"idea.md", "z/late.py", *reached}
    assert Submission("idea", tmp_path).text(min(reached, default="z/late.py")) in ("", "import os")


@pytest.mark.parametrize("levels", [1000, 5000])
def test_folders_are_given_and_removed_however_deep(tmp_path: Path, levels: int) -> None:
    reviews = tmp_path / "reviews"
    reviews.mkdir()
    nest(reviews, levels)
    (reviews / "link").symlink_to("/etc/passwd")
    owner = os.stat("/etc/passwd").st_uid
    ownership.give(reviews, Account(os.getuid(), os.getgid()))
    assert os.stat("/etc/passwd").st_uid == owner
    folders.remove(reviews)
    assert not reviews.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_links_are_given_and_not_what_they_lead_to(tmp_path: Path) -> None:
    lay(tmp_path, {"home/a/b": "", "other": ""})
    (tmp_path / "home" / "link").symlink_to("../other")
    ownership.give(tmp_path / "home", Account(12345, 54321))
    given = [tmp_path / "home" / name for name in ("", "a", "a/b", "link")]
    assert {(p.lstat().st_uid, p.lstat().st_gid) for p in given} == {(12345, 54321)}
    assert (tmp_path / "other").stat().st_uid == 0


@pytest.mark.parametrize("levels", [1000, 5000])
def test_a_deep_workspace_is_no_way_out_of_a_verdict(repo: Repository, levels: int) -> None:
    """Work is judged, and known again, by what of it can be reached."""
    nest = f"{IDEA}exec python3 '{repo.path}/nest.py'"
    repo.lay({"agent.sh": nest, "nest.py": NEST.format(levels=levels)})
    options = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh")
    run = repo.runs[-1].path
    for agent, *more in ((f"replay:{run}",), ("cmd:sh agent.sh", f"--mlr-resume={run.name}")):
        out = repo.run(*options, f"--mlr-agent={agent}", *more)
        (case,) = repo.report.cases
        assert (case.verdict, case.fault, case.attempts) == ("pass", None, 1)
    out.stdout.fnmatch_lines(["1 of the 1 cases of this session were reused"])
    repo.lay({"agent.sh": IDEA})
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh", f"--mlr-resume={run.name}")
    (case,) = Report.of(RunFolder(run)).cases
    assert (case.verdict, case.attempts) == ("pass", 2)
    assert list((run / "superseded").glob("idea/*/r1/1/submission/d"))


@pytest.mark.parametrize("spare", range(-2, 3))
def test_a_path_that_is_too_long_by_its_last_name_is_left_out(tmp_path: Path, spare: int) -> None:
    """The folder of last.py, whose path is near the limit, can be read though the file cannot."""
    left = folders.LONGEST_PATH - 1 - len(os.fspath(tmp_path)) - len("/last.py") - spare
    names = ["x" * (left % 2 + 1), *["d"] * (left // 2 - 1)]
    place = os.open(tmp_path, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    file = os.open("last.py", os.O_CREAT | os.O_WRONLY, dir_fd=place)
    before = stamp_of(tmp_path), digest_of(tmp_path)
    assert before[1][1] == (spare >= 0)
    os.write(file, b"import os")
    os.close(file)
    os.close(place)
    assert (before != (stamp_of(tmp_path), digest_of(tmp_path))) == (spare >= 0)


# Records of a workspace


def test_a_file_whose_time_was_set_back_is_another(tmp_path: Path) -> None:
    """As tools do that restore times; a copy of the whole has other stamps and the same digest."""
    lay(tmp_path, {"a/idea.md": "# An idea", "a/b.md": "# Other", "a/c.md": "# Three"})
    work, old = tmp_path / "a", tmp_path / "old"
    record = digest_of(work)[0], stamp_of(work)
    assert is_unchanged(work, *record)
    shutil.copytree(work, old)
    assert stamp_of(old) != record[1]
    assert is_unchanged(old, *record)
    for change in (
        lambda: (work / "b.md").write_text("# 0ther"),
        lambda: (work / "c.md").replace(work / "b.md"),
        lambda: shutil.copy2(old / "c.md", work / "b.md"),
    ):
        change()
        about = (old / "b.md").stat()
        os.utime(work / "b.md", ns=(about.st_atime_ns, about.st_mtime_ns))
        lay(work, {"c.md": "# Three"})
        about = (old / "c.md").stat()
        os.utime(work / "c.md", ns=(about.st_atime_ns, about.st_mtime_ns))
        assert stamp_of(work) != record[1]
        assert not is_unchanged(work, *record)


def test_work_is_known_by_its_digest_where_the_stamp_is_an_earlier_versions(
    repo: Repository,
) -> None:
    """It was judged to be unusable for a folder that is too deep: its agent is not run again."""
    repo.lay({"agent.sh": f"{IDEA}exec python3 '{repo.path}/nest.py'"})
    repo.lay({"nest.py": NEST.format(levels=5000)})
    options = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-agent=cmd:sh agent.sh")
    repo.run(*options, "--mlr-threshold=overall>=1")
    (path,) = repo.runs[-1].path.glob("cases/*/*/r1/result.json")
    fault = {"blame": "agent", "cause": "unusable_output", "message": "the workspace is unreadable"}
    for changes in ({"submission_stamp": "0" * 64}, {"submission_stamp": None, "fault": fault}):
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        repo.run(*options, "--mlr-threshold=overall>=1", "--mlr-resume")
        (case,) = repo.report.cases
        assert (case.verdict, case.attempts, case.rerun_because) == (
            *("fail" if "fault" in changes else "pass", 1),
            None,
        )


# Links


def linked(folder: Path, **links: str) -> Path:
    lay(folder, {"a.md": "# A", "b.md": "# B", "real/x.md": "x", "other/x.md": "x"})
    for name, target in links.items():
        path = folder / name.replace("_", ".")
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    return folder


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("idea_md", "a.md", "b.md"), ("results", "real", "other"), ("idea_md", "a.md", "nowhere")],
)
def test_where_a_link_leads_is_part_of_digest_and_stamp(
    tmp_path: Path, name: str, before: str, after: str
) -> None:
    linked(tmp_path, **{name: before})
    found = digest_of(tmp_path), stamp_of(tmp_path)
    assert found == (digest_of(tmp_path), stamp_of(tmp_path))
    linked(tmp_path, **{name: after})
    assert digest_of(tmp_path)[0] != found[0][0]
    assert digest_of(tmp_path)[1] == found[0][1] == 4
    assert stamp_of(tmp_path) != found[1]


def test_a_link_counts_by_where_it_leads_and_not_by_how(tmp_path: Path) -> None:
    one = digest_of(linked(tmp_path / "one", results="real", chain="results"))
    two = tmp_path / "two"
    assert digest_of(linked(two, results=str(two / "real"), chain="./other/../real")) == one


def test_digests_without_links_are_what_they_were(tmp_path: Path) -> None:
    """As an earlier version has computed them."""
    assert digest_of(linked(tmp_path)) == (
        "a0180b3de287d1afa28877304276e0f5e7ed1e8c982a72bc6af2b4440a9bdb20",
        4,
    )
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to("loop")
    for number in range(1500):  # Python would follow them by recursion
        (tmp_path / f"l{number}").symlink_to(f"l{number + 1}")
    assert digest_of(tmp_path)[0] == digests.of_files(digests.walk(tmp_path))


LINKS = """
printf '# One\\n' > a.md; printf '# Two, which is longer\\n' > b.md; ln -s a.md idea.md
"""


def test_a_link_that_was_turned_is_noticed(repo: Repository) -> None:
    repo.lay({"agent.sh": LINKS})
    options = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh")
    run = repo.runs[-1].path
    (idea,) = run.glob("cases/idea/*/r1/submission/idea.md")
    idea.unlink()
    idea.symlink_to("b.md")
    repo.run(*options, f"--mlr-agent=replay:{run}")
    (case,) = repo.report.cases
    assert case.fault is not None
    assert "was changed since" in case.fault.message
    out = repo.run(*options, "--mlr-agent=cmd:sh agent.sh", f"--mlr-resume={run.name}")
    out.stdout.fnmatch_lines(["*the submission changed*"])


#: A folder under another name, an absolute link, a link to a link, and to a folder with no file.
REAL = """
mkdir -p real/deep void; printf '# Results\\n\\naccuracy 0.9\\n' > real/results.md
ln -s real results; ln -s "$PWD/real/results.md" real/deep/again.md; ln -s results twice
ln -s ../void real/empty; ln -s . here; ln -s /etc out; ln -s nowhere gone
"""


def test_a_replay_has_the_links_and_so_the_verdict(repo: Repository) -> None:
    repo.lay({"agent.sh": REAL})
    options = ("--mlr-stage=experiment", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    local = "--mlr-sandbox=local"
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh", local)
    (first,) = repo.report.cases
    assert (first.verdict, first.fault) == ("pass", None)
    run = repo.runs[-1].path
    repo.run(*options, f"--mlr-agent=replay:{run}")
    repo.run(*words(run, ["--mlr-judge=checklist", "--mlr-threshold=overall>=1"]))
    assert len(repo.runs) == 3
    for again in repo.runs[1:]:
        (case,) = Report.of(again).cases
        assert (case.verdict, case.overall, case.scores, case.fault) == (
            *(first.verdict, first.overall, first.scores),
            None,
        )
        place = next(again.path.glob("cases/experiment/*/r1/submission"))
        assert os.readlink(place / "results") == "real"
        assert not (place / "out").is_symlink()
        assert _digest(again.path) == _digest(run)
        assert digest_of(place)[0] == _digest(run)


def _digest(run: Path) -> str | None:
    record = read_model(next(run.glob("cases/*/*/r1/submission.json")), SubmissionRecord)
    assert record is not None
    return record.digest


# Holes


def hollow(path: Path, size: int, *places: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
        for place in places:
            file.seek(place)
            file.write(b"content")
    return path


def test_a_replay_keeps_holes(repo: Repository) -> None:
    repo.lay(
        {"agent.sh": f"{IDEA}truncate -s 3G big; printf x | dd of=big seek=99999 conv=notrunc"}
    )
    options = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh")
    run = repo.runs[-1].path
    repo.run(*options, f"--mlr-agent=replay:{run}")
    old, new = (next(folder.path.glob("cases/*/*/r1/submission/big")) for folder in repo.runs)
    assert new.stat().st_size == old.stat().st_size == 3 * GIB
    assert new.stat().st_blocks * 512 < 2**20
    assert new.stat().st_ino != old.stat().st_ino
    assert digests.of_file(new) == digests.of_file(old)
    assert _digest(repo.runs[1].path) == _digest(run)


def test_copies_are_whole(tmp_path: Path) -> None:
    for number, (size, places) in enumerate(
        [(0, ()), (7, (0,)), (10**6, (0, 500_000)), (9 * 10**6 + 1, (4_000_001,)), (5000, ())]
    ):
        old, new = hollow(tmp_path / f"o{number}", size, *places), tmp_path / f"n{number}"
        new.write_text("what was there before, and was longer than some")
        folders.copy(old, new)
        assert new.read_bytes() == old.read_bytes()


def test_many_files_of_holes_are_not_read_for_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is small enough to be read as a whole, and 2 TiB in all take no room on the disk."""
    monkeypatch.setattr(digests, "_HOLES", 2**28)  # some machines are slow
    for number in range(2000):
        hollow(tmp_path / f"f{number:04}", GIB)
    for look in (lambda: digest_of(tmp_path)[0], lambda: snapshot(tmp_path).digest):
        start = time.monotonic()
        before = look()
        assert time.monotonic() - start < 60
        hollow(tmp_path / "f1500", GIB, GIB // 2)
        assert look() != before
        hollow(tmp_path / "f1500", GIB)
