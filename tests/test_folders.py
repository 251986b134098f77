"""What lies in a folder that an agent filled: however deep, linked or hollow, it does no harm."""

from __future__ import annotations

import os
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
from pytest_mlrbench.run.submission import SubmissionRecord, digest_of, stamp_of
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


@pytest.mark.parametrize(("levels", "verdict"), [(1000, "pass"), (5000, "fail")])
def test_a_deep_workspace_is_no_way_out_of_a_verdict(
    repo: Repository, levels: int, verdict: str
) -> None:
    """What is deeper than a path can be long is the agent's fault, and no system's."""
    nest = f"{IDEA}exec python3 '{repo.path}/nest.py'"
    repo.lay({"agent.sh": nest, "nest.py": NEST.format(levels=levels)})
    options = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh")
    (case,) = repo.report.cases
    assert (case.verdict, case.fault and case.fault.blame) == (
        verdict,
        "agent" if verdict == "fail" else None,
    )
    run = repo.runs[-1].path
    repo.run(*options, f"--mlr-agent=replay:{run}")
    (again,) = repo.report.cases
    assert again.verdict == verdict
    repo.lay({"agent.sh": IDEA})
    repo.run(*options, "--mlr-agent=cmd:sh agent.sh", f"--mlr-resume={run.name}")
    (case,) = Report.of(RunFolder(run)).cases
    assert case.verdict == "pass"
    assert list((run / "superseded").glob("idea/*/r1/1/submission/d"))


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
    for path in linked(tmp_path).rglob("*.md"):
        os.utime(path, (10**9, 10**9))
    assert digest_of(tmp_path) == (
        "a0180b3de287d1afa28877304276e0f5e7ed1e8c982a72bc6af2b4440a9bdb20",
        4,
    )
    assert stamp_of(tmp_path) == "594a1883c3b73ca1f403ddf38c5a4b4113e116aa6361400c910694539cb28358"
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
