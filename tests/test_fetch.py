"""``mlrbench tasks fetch``: what is there in the end is the published content, or is named."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="the extra 'fetch' is not installed")

from github_server import (
    COMMIT,
    LISTING,
    Published,
    Server,
    answers,
    command,
    corrupt,
    forward_proxy,
    github,
    hang,
    make_listing,
    parts,
    serving,
    set_environment,
    truncate,
)

from pytest_mlrbench.cli import main
from pytest_mlrbench.fetching import fetch as fetching
from pytest_mlrbench.fetching import store
from pytest_mlrbench.fetching.fetch import Tally, fetch
from pytest_mlrbench.fetching.github import Patience
from pytest_mlrbench.fetching.listing import listing_path
from pytest_mlrbench.fetching.wanted import Plan, Wanted
from pytest_mlrbench.suites import loading
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.stages import STAGES

RAW, API = "MLRBENCH_GITHUB_RAW_URL", "MLRBENCH_GITHUB_API_URL"
RESULTS = "agent_results/experiments_and_writeups/claude/alpha/results"
IDEA = "agent_results/ideas_and_proposals/{}/idea.md"
QUICK = Patience(first=0.01, longest=0.05)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    made = Published(tmp_path / "catalogue")
    monkeypatch.setattr(loading, "shipped", lambda name: made.catalogue)
    return made


@pytest.fixture
def server(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    monkeypatch.setattr(fetching, "PATIENCE", QUICK)
    with github(published.files) as running:
        set_environment(monkeypatch, running, tmp_path / "cache")
        yield running


class Shell:
    """A user who fetches into a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def fetch(self, *words: str) -> tuple[int, str, list[str]]:
        """Return exit code, the last line of the output, and the sentences about problems."""
        code = main(["tasks", "fetch", "--tasks-dir", str(self.folder), *words])
        out, err = self._capsys.readouterr()
        problems = err.splitlines()
        for line in problems:
            assert line.startswith("mlrbench: ")
            assert line.endswith((".", "?"))
        return code, out.splitlines()[-1] if out else "", problems

    def files(self) -> dict[str, bytes]:
        """Path in the repository → what is there."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith(".mlrbench")
        }


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path / "texts", capsys)


def needed(published: Published, *tasks: str) -> dict[str, bytes]:
    return {path: published.files[path] for path in published.needed(*tasks)}


# What is fetched


def test_everything_that_stages_start_from_and_nothing_else(
    published: Published, server: Server, shell: Shell
) -> None:
    code, last, problems = shell.fetch()
    assert (code, problems) == (0, [])
    assert last == f"28 of 28 files are in {shell.folder} (28 fetched now, 0 were there)"
    assert shell.files() == needed(published)
    assert sorted(server.asked) == sorted([LISTING, *published.needed()])


def test_what_was_fetched_is_found_by_the_suites(
    published: Published, server: Server, shell: Shell
) -> None:
    shell.fetch()
    suite = load_suite("mlrbench-10", tasks_dir=shell.folder)
    assert all(not suite.missing_inputs(t, s) for t in suite.tasks for s in STAGES.values())
    inputs = suite.inputs(suite.tasks[0], STAGES["paper"])
    assert "results/figures/recall@10 of all.png" in inputs
    assert len(inputs) == 8


def test_the_texts_need_no_list_of_files(
    published: Published, server: Server, shell: Shell
) -> None:
    assert shell.fetch("--stage", "idea,end_to_end")[:1] == (0,)
    assert sorted(server.asked) == sorted(f"tasks/{task}.md" for task in Published.ids)
    assert len(shell.files()) == 5


def test_a_stage_fetches_its_inputs_only(
    published: Published, server: Server, shell: Shell
) -> None:
    assert shell.fetch("--stage", "proposal", "--suite", "mlrbench-10")[0] == 0
    assert {path.rpartition("/")[2] for path in shell.files()} == {
        "alpha.md",
        "beta.md",
        "idea.md",
        "related_work.md",
    }


def test_some_tasks_first_and_others_later_ask_for_one_list(
    published: Published, server: Server, shell: Shell
) -> None:
    assert shell.fetch("--tasks", "al*", "gamma")[0] == 0
    assert shell.files() == needed(published, "alpha", "gamma")
    assert shell.fetch("--suite", "mlrbench-10")[0] == 0
    assert shell.fetch()[0] == 0
    assert shell.files() == needed(published)
    assert server.times(LISTING) == 1


def test_without_a_folder_the_cache_of_the_user_is_filled(
    published: Published, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "fetch", "--stage", "idea"]) == 0
    root = tmp_path / "cache" / "pytest-mlrbench" / "mlrbench" / COMMIT[:12]
    assert f"are in {root} (" in capsys.readouterr().out
    suite = load_suite("mlrbench")
    assert suite.missing_inputs(suite.tasks[0], STAGES["idea"]) == ()


def test_names_with_an_at_sign_and_spaces_are_encoded(server: Server, shell: Shell) -> None:
    shell.fetch("--tasks", "alpha")
    (path,) = (path for path in server.raw if "recall" in path)
    assert path.endswith("/results/figures/recall%4010%20of%20all.png")


def test_results_are_there_only_when_they_are_whole(server: Server, shell: Shell) -> None:
    """A task counts as one with results when its results.md is there."""
    shell.fetch()
    assert [path.rpartition("/")[2] for path in server.asked[-2:]] == ["results.md"] * 2


def test_many_files_are_in_flight_at_once(server: Server, shell: Shell) -> None:
    server.delay = 0.05
    assert shell.fetch("--jobs", "6")[0] == 0
    assert server.most == 6


def test_one_job_is_one_at_a_time(server: Server, shell: Shell) -> None:
    assert shell.fetch("--jobs", "1")[0] == 0
    assert server.most == 1


# What is there already


def test_what_is_there_and_good_is_not_asked_for_again(server: Server, shell: Shell) -> None:
    shell.fetch()
    server.asked.clear()
    assert shell.fetch() == (
        0,
        f"28 of 28 files are in {shell.folder} (0 fetched now, 28 were there)",
        [],
    )
    assert server.asked == []


def test_a_changed_file_is_replaced_and_counted(
    published: Published, server: Server, shell: Shell
) -> None:
    shell.fetch()
    server.asked.clear()
    for path in ("tasks/beta.md", IDEA.format("beta")):
        (shell.folder / path).write_text("mine")
    code, last, _ = shell.fetch()
    assert (code, shell.files()) == (0, needed(published))
    assert last.endswith("(2 fetched now, 2 of them instead of changed ones, 26 were there)")
    assert sorted(server.asked) == [IDEA.format("beta"), "tasks/beta.md"]


def test_files_in_the_shortened_spelling_are_known_and_completed_in_it(
    published: Published, server: Server, shell: Shell
) -> None:
    for path, data in needed(published).items():
        short = path.removeprefix("agent_results/").replace(
            "experiments_and_writeups", "experiments"
        )
        place = shell.folder / short
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    short = shell.folder / "experiments" / "claude" / "alpha" / "results" / "curve.PNG"
    short.unlink()
    assert shell.fetch()[1].endswith("(1 fetched now, 27 were there)")
    assert short.is_file()
    assert not (shell.folder / "agent_results").exists()


@pytest.mark.parametrize("kept", [b"", b"{", b"[]", b'{"commit": "another"}', None])
def test_a_kept_list_that_is_of_no_use_is_asked_for_again(
    server: Server, shell: Shell, kept: bytes | None
) -> None:
    shell.fetch()
    path = shell.folder / ".mlrbench-listing.json"
    path.write_bytes(
        path.read_bytes().replace(COMMIT.encode(), b"f" * 40) if kept is None else kept
    )
    assert shell.fetch()[0] == 0
    assert server.times(LISTING) == 2


def test_only_what_is_needed_of_the_list_is_kept(
    published: Published, server: Server, shell: Shell
) -> None:
    shell.fetch("--tasks", "gamma")
    text = (shell.folder / ".mlrbench-listing.json").read_text()
    assert set(re.findall(r'"([^"]+/[^"]+)":', text)) == set(published.needed())


# Interrupted


def start(published: Published, shell: Shell) -> subprocess.Popen[str]:
    words = ["tasks", "fetch", "--jobs", "2", "--tasks-dir", str(shell.folder)]
    return subprocess.Popen(
        command(published.catalogue, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(server: Server, requests: int) -> None:
    end = time.monotonic() + 30
    while len(server.asked) < requests:
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("requests", [1, 2, 9, 20])
def test_a_killed_fetch_leaves_whole_files_and_is_gone_on_with(
    published: Published, server: Server, shell: Shell, requests: int
) -> None:
    server.delay = 0.03
    with start(published, shell) as process:
        wait_for(server, requests)
        process.kill()
    there = {path: data for path, data in shell.files().items() if ".part" not in path}
    assert len(there) < 28
    assert there.items() <= needed(published).items()
    listed = listing_path_of(shell).exists()
    time.sleep(2 * server.delay)  # what was in flight is not counted to the second fetch
    server.asked.clear()
    assert shell.fetch()[1].endswith(f"({28 - len(there)} fetched now, {len(there)} were there)")
    assert shell.files() == needed(published)
    asked = sorted(path for path in server.asked if path != LISTING)
    assert asked == sorted(set(published.needed()) - set(there))
    assert server.times(LISTING) == (0 if listed else 1)


def listing_path_of(shell: Shell) -> Path:
    source = load_suite("mlrbench", tasks_dir=shell.folder).source
    assert source is not None
    return listing_path(source)


def test_what_a_killed_fetch_left_half_written_is_removed_and_nothing_else(
    server: Server, shell: Shell
) -> None:
    folder = shell.folder / "tasks"
    folder.mkdir(parents=True)
    strays = [
        folder / "alpha.md.123.part",
        folder / "gamma.md.99999.part",
        shell.folder / ".mlrbench-listing.json.123.part",
    ]
    mine = [folder / "mine.md.123.part", folder / "alpha.md.part", folder / "alpha.md.x.part"]
    for path in (*strays, *mine):
        path.write_text("half")
    assert shell.fetch("--stage", "idea")[0] == 0
    assert [path.exists() for path in (*strays, *mine)] == [False] * 3 + [True] * 3


def test_ctrl_c_ends_at_once_and_says_how_far_it_is(
    published: Published, server: Server, shell: Shell
) -> None:
    server.delay = 0.05
    server.always = {"tasks/epsilon.md": hang}
    with start(published, shell) as process:
        wait_for(server, 20)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert time.monotonic() - begin < 10
    assert process.returncode == 130
    (there,) = re.findall(
        r"^mlrbench: interrupted: (\d+) of 28 files are in .*; running it again goes on\.$", err
    ) or [err]
    assert int(there) == len(shell.files())
    assert parts(shell.folder) == []
    assert "Traceback" not in out + err


# Faults that pass


@pytest.mark.parametrize(
    "fault",
    [
        corrupt,
        truncate,
        answers(500),
        answers(502, b"<html>"),
        answers(503, Retry_After="0"),
        answers(429, Retry_After="0"),
        answers(429, Retry_After=formatdate(usegmt=True)),
        answers(429),
        answers(403, x_ratelimit_remaining="0", x_ratelimit_reset="1000000000"),
        answers(200),
        answers(200, b"<html>Log in to the hotel's network</html>"),
        answers(200, b"not gzip", Content_Encoding="gzip"),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("path", ["tasks/beta.md", IDEA.format("beta")])
def test_a_fault_that_passes_is_not_seen(
    published: Published, server: Server, shell: Shell, path: str, fault: object
) -> None:
    server.once = {path: [fault]}
    assert shell.fetch("--tasks", "beta", "alpha")[::2] == (0, [])
    assert shell.files() == needed(published, "alpha", "beta")
    assert server.times(path) == 2


def test_a_silence_that_passes_is_not_seen(
    published: Published, server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE", Patience(first=0.01, silence=0.5))
    server.once = {"tasks/beta.md": [hang], IDEA.format("alpha"): [hang]}
    assert shell.fetch()[::2] == (0, [])
    assert shell.files() == needed(published)


@pytest.mark.parametrize("fault", [truncate, answers(500), answers(429)], ids=range(3))
def test_the_list_is_asked_for_patiently_too(server: Server, shell: Shell, fault: object) -> None:
    server.once = {LISTING: [fault] * 4}
    assert shell.fetch()[0] == 0
    assert server.times(LISTING) == 5


def patient(waits: list[float], **changes: float) -> Patience:
    """Patience that notes how long it would have waited."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return Patience(sleep=sleep, **changes)


def fetch_texts(shell: Shell, patience: Patience, *tasks: str, jobs: int = 1) -> Tally:
    suite = load_suite("mlrbench", tasks_dir=shell.folder)
    tally = Tally(shell.folder)
    chosen = [task for task in suite.tasks if task.id in tasks or not tasks]
    fetch(tally, suite, chosen, ["idea"], jobs=jobs, patience=patience)
    return tally


def test_waits_double_up_to_a_limit_with_some_jitter(server: Server, shell: Shell) -> None:
    server.once = {"tasks/alpha.md": [answers(500)] * 4}
    waits: list[float] = []
    assert fetch_texts(shell, patient(waits, longest=3), "alpha").complete
    for wait, least, most in zip(waits, (1, 2, 3, 3), (2, 3, 3, 3), strict=True):
        assert least <= wait <= most


def test_all_patience_for_one_file_is_less_than_a_minute(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(500)}
    waits: list[float] = []
    assert not fetch_texts(shell, patient(waits), "alpha").complete
    assert 15 <= sum(waits) <= 60


def test_a_server_is_waited_for_as_long_as_it_asks(server: Server, shell: Shell) -> None:
    server.once = {
        "tasks/alpha.md": [
            answers(429, Retry_After="7"),
            answers(503, Retry_After="60"),
            answers(429, Retry_After=formatdate(time.time() + 30, usegmt=True)),
            answers(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(time.time()) + 20)),
        ]
    }
    waits: list[float] = []
    assert fetch_texts(shell, patient(waits), "alpha").complete
    assert waits[:2] == [7, 60]
    assert waits[2] == pytest.approx(30, abs=3)
    assert waits[3] == pytest.approx(21, abs=3)


# Faults that stay, of one file


@pytest.mark.parametrize("path", ["tasks/beta.md", IDEA.format("alpha"), IDEA.format("beta")])
def test_a_file_with_other_content_is_named_and_the_rest_is_there(
    published: Published, server: Server, shell: Shell, path: str
) -> None:
    server.always = {path: corrupt}
    code, last, (problem,) = shell.fetch()
    assert (code, last.startswith("27 of 28 files are in ")) == (1, True)
    assert problem.startswith(f"mlrbench: {path}: what was sent is not the ")
    assert "twice" in problem
    expected = needed(published)
    del expected[path]
    assert shell.files() == expected
    assert server.times(path) == 2
    again = server.headers[[i for i, name in enumerate(server.asked) if name == path][1]]
    assert again["cache-control"] == "no-cache"


def test_what_the_catalogue_knows_counts_more_than_the_list(
    published: Published, server: Server, shell: Shell
) -> None:
    """Whoever can change the files of a mirror can change its list too."""
    changed = published.files | {IDEA.format("alpha"): b"other", "tasks/beta.md": b"other"}
    server.content = {**changed, LISTING: json.dumps(make_listing(changed)).encode()}
    code, _, problems = shell.fetch()
    assert code == 1
    assert [line.split()[1] for line in sorted(problems)] == [
        f"{IDEA.format('alpha')}:",
        "tasks/beta.md:",
    ]
    assert all("is not the published content (SHA-256 " in line for line in problems)


def test_a_changed_file_here_is_kept_if_there_is_no_better_one(
    server: Server, shell: Shell
) -> None:
    shell.fetch()
    (shell.folder / "tasks/beta.md").write_text("mine")
    server.always = {"tasks/beta.md": corrupt}
    assert shell.fetch()[:2] == (
        1,
        f"27 of 28 files are in {shell.folder} (0 fetched now, 27 were there)",
    )
    assert (shell.folder / "tasks/beta.md").read_text() == "mine"


def test_a_file_that_is_not_there_is_named(server: Server, shell: Shell) -> None:
    del server.content["tasks/beta.md"]
    code, last, problems = shell.fetch()
    assert (code, last[:8]) == (1, "27 of 28")
    assert problems == [
        f"mlrbench: tasks/beta.md is not in the repository at commit {COMMIT[:12]}."
    ]
    assert server.times("tasks/beta.md") == 1


def test_a_file_that_is_not_in_the_list_is_named(
    published: Published, server: Server, shell: Shell
) -> None:
    listed = {path: data for path, data in published.files.items() if path != IDEA.format("beta")}
    server.content[LISTING] = json.dumps(make_listing(listed)).encode()
    code, last, problems = shell.fetch()
    assert (code, last[:8]) == (1, "27 of 28")
    assert problems == [
        f"mlrbench: {IDEA.format('beta')} is not in the repository at commit {COMMIT[:12]}."
    ]
    # Perhaps it was the list of a poor mirror: it is not kept.
    server.content[LISTING] = json.dumps(published.listing()).encode()
    assert shell.fetch()[0] == 0


def test_one_file_that_the_server_fails_on_is_named(server: Server, shell: Shell) -> None:
    server.always = {"tasks/beta.md": answers(500)}
    code, last, (problem,) = shell.fetch()
    assert (code, last[:8]) == (1, "27 of 28")
    assert re.fullmatch(
        r"mlrbench: tasks/beta.md could not be fetched, tried 5 times \(127.0.0.1:\d+ answers 500"
        r" Internal Server Error\): run it again later\.",
        problem,
    )


def test_so_many_problems_are_not_all_printed(
    published: Published, server: Server, shell: Shell
) -> None:
    for path in published.needed():
        del server.content[path]
    code, last, problems = shell.fetch()
    assert (code, last[:7]) == (1, "0 of 28")
    assert len(problems) == 21
    assert problems[-1] == "mlrbench: the same or the like of 8 more files."


# Faults that end it all


def stopped(server: Server, shell: Shell, *words: str) -> str:
    """A fetch of the texts must end early; return the sentence that says why."""
    code, last, problems = shell.fetch("--stage", "idea", *words)
    assert code == 1
    assert last.startswith(("0 of 5 files are in", "nothing was fetched"))
    assert shell.files() == {}
    return problems[0]


def test_a_server_that_only_fails_is_soon_left_alone(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(500)}
    assert "3 files in a row could not be had" in stopped(server, shell, "--jobs", "1")
    assert len(server.asked) == 15


def test_a_server_that_only_hangs_is_soon_left_alone(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE", Patience(first=0.01, silence=0.5, attempts=2))
    server.always = {"*": hang}
    begin = time.monotonic()
    code, _, problems = shell.fetch("--stage", "idea")
    assert code == 1
    assert "3 files in a row" in problems[0]
    assert "was silent for 0.5 s" in problems[1]
    assert time.monotonic() - begin < 15


def test_an_answer_that_drips_is_not_waited_for(server: Server, shell: Shell) -> None:
    def drip(handler: object, right: bytes) -> None:
        handler.send_response(200)  # type: ignore[attr-defined]
        handler.end_headers()  # type: ignore[attr-defined]
        for _ in range(40):
            handler.wfile.write(b".")  # type: ignore[attr-defined]
            time.sleep(0.1)

    server.always = {"tasks/alpha.md": drip}
    tally = fetch_texts(shell, Patience(first=0.01, attempts=2, answer=1), "alpha", "beta")
    assert (tally.fetched, len(tally.problems)) == (1, 1)
    assert "took too long in all" in tally.problems[0]


def test_a_limit_of_requests_is_told_with_its_end(server: Server, shell: Shell) -> None:
    server.always = {
        LISTING: answers(
            403, b"{}", x_ratelimit_remaining="0", x_ratelimit_reset=str(int(time.time()) + 1920)
        )
    }
    code, last, (problem,) = shell.fetch()
    assert re.fullmatch(
        r"mlrbench: 127.0.0.1:\d+ allows no more requests until \d{4}-\d\d-\d\d \d\d:\d\d UTC, in"
        r" 32 minutes \(403 Forbidden\): run it again then, or set GITHUB_TOKEN, which raises the"
        r" limit\.",
        problem,
    )
    assert server.times(LISTING) == 1
    # What is known by the catalogue alone is fetched all the same: five texts and alpha's inputs.
    assert (code, last) == (
        1,
        f"12 of at least 25 files are in {shell.folder} (12 fetched now, 0 were there)",
    )


def test_with_a_token_no_token_is_advised(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    server.always = {LISTING: answers(429, Retry_After="3600")}
    (problem,) = shell.fetch()[2]
    assert problem.endswith("in 60 minutes (429 Too Many Requests): run it again then.")


def test_a_limit_for_files_ends_the_fetch(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(429, Retry_After="120")}
    problem = stopped(server, shell, "--jobs", "1")
    assert problem.endswith("in 2 minutes (429 Too Many Requests): run it again then.")
    assert len(server.asked) == 1


def test_a_limit_without_an_end_is_borne_for_a_while(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(429)}
    assert "allows no more requests for now" in stopped(server, shell, "--jobs", "1")
    assert len(server.asked) == 5


def test_a_reset_beyond_all_time_is_borne(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(403, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 30)}
    assert "allows no more requests until" in stopped(server, shell)


def test_a_plain_refusal_is_not_repeated(server: Server, shell: Shell) -> None:
    server.always = {"*": answers(403)}
    code, _, problems = shell.fetch("--stage", "idea", "--jobs", "1")
    assert code == 1
    assert problems[1].endswith(" answers 403 Forbidden.")
    assert len(server.asked) == 3


def test_a_token_that_is_not_accepted_is_told(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    server.always = {LISTING: answers(401, b'{"message": "Bad credentials"}')}
    (problem,) = shell.fetch()[2]
    assert "does not accept GITHUB_TOKEN (401 Unauthorized): set a valid one, or none." in problem


def test_a_refused_connection_is_told_soon(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv(RAW, f"http://user:hidden@127.0.0.1:{port}")
    problem = stopped(server, shell)
    assert re.fullmatch(
        rf"mlrbench: 127.0.0.1:{port} cannot be reached \(Connection refused\): check the network,"
        r" and HTTPS_PROXY if you are behind one\.",
        problem,
    )


def test_a_machine_without_network_is_told_in_ten_seconds(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (RAW, API):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    suite = load_suite("mlrbench", tasks_dir=shell.folder)
    tally, waits = Tally(shell.folder), list[float]()
    fetch(tally, suite, suite.tasks, tuple(STAGES), jobs=1, patience=patient(waits))
    assert len(tally.problems) == 2
    assert len(waits) == 4
    assert sum(waits) < 10


def test_a_name_that_is_not_known_is_told_soon(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RAW, "https://no-such-host.invalid")
    problem = stopped(server, shell)
    assert "no-such-host.invalid cannot be reached (its name is not known here)" in problem


def test_a_certificate_nobody_vouches_for_is_not_taken(
    server: Server, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(Server(), str, context) as secure:
        port = secure.url.rpartition(":")[2]
        monkeypatch.setenv(RAW, f"https://localhost:{port}")
        # One at a time: httpcore leaves a connection open whose handshake is broken off.
        problem = stopped(server, shell, "--jobs", "1")
        assert f"the certificate of localhost:{port} cannot be verified" in problem
        assert secure.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert "not in the repository" in stopped(server, shell)
        assert len(secure.asked) == 5


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is JSON of another form"),
        (b'{"message": "moved"}', "is JSON of another form"),
        (b'{"tree": []}', "names none of the files that are needed"),
        (b'{"tree": [1, {}, {"type": "blob"}]}', "names none of the files that are needed"),
        (b'{"tree": [{"path": "tasks/a.md", "type": "blob"}]}', "gives no id for tasks/a.md"),
        (
            b'{"tree": [{"path": "%s/../x.png", "type": "blob", "sha": "%s"}]}'
            % (RESULTS.encode(), b"0" * 40),
            f"names the odd path '{RESULTS}/../x.png'",
        ),
    ],
)
def test_a_list_of_no_use_is_told_and_the_texts_are_there(
    server: Server, shell: Shell, body: bytes, said: str
) -> None:
    server.content[LISTING] = body
    code, last, (problem,) = shell.fetch()
    assert f" {said}: try again later, or clone the repository at commit {COMMIT[:12]}" in problem
    assert (code, last[:14]) == (1, "12 of at least")


def test_a_list_that_was_cut_short_is_not_used(
    published: Published, server: Server, shell: Shell
) -> None:
    server.content[LISTING] = json.dumps(published.listing() | {"truncated": True}).encode()
    code, _, (problem,) = shell.fetch()
    assert code == 1
    assert "the list of files from 127.0.0.1" in problem
    assert "was cut short" in problem


def test_a_repository_that_is_not_there_is_told(server: Server, shell: Shell) -> None:
    del server.content[LISTING]
    (problem,) = shell.fetch()[2]
    assert f"knows no repository owner/published with commit {COMMIT[:12]}" in problem


# The disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k,mode=777", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_fetch_with_nothing_half_written(
    published: Published, server: Server, shell: Shell, small_disk: Path
) -> None:
    shell.folder = small_disk
    code, last, problems = shell.fetch("--jobs", "4")
    assert code == 1
    assert re.search(
        r"^mlrbench: the disk is full \(.* could not be written\): make room", problems[0]
    )
    there = shell.files()
    assert len(there) == int(last.split()[0]) < 28
    assert there.items() <= needed(published).items()
    assert parts(small_disk) == []


def test_a_disk_that_is_read_only_is_told(server: Server, shell: Shell, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    shell.folder = small_disk
    problem = stopped(server, shell)
    assert "cannot be written (Read-only file system): make its folder writable" in problem
    assert len(server.asked) <= 8


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_no_more_ends_the_fetch(
    published: Published,
    server: Server,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    written: list[Path] = []

    def write(path: Path, data: bytes) -> None:
        if len(written) == 3:
            path.write_bytes(data[:2])
            raise OSError(number, os.strerror(number), str(path))
        written.append(path)
        path.write_bytes(data)

    monkeypatch.setattr(store, "_write", write)
    code, last, problems = shell.fetch("--stage", "idea", "--jobs", "1")
    assert (code, last[:6]) == (1, "3 of 5")
    assert "--tasks-dir" in problems[0]
    assert sorted(shell.files()) == ["tasks/alpha.md", "tasks/beta.md", "tasks/gamma.md"]
    assert len(server.asked) == 4


def test_a_folder_that_is_none_is_told(server: Server, shell: Shell) -> None:
    shell.folder.write_text("a file")
    code, _, (problem,) = shell.fetch("--stage", "idea")
    assert code == 1
    assert "cannot be written (Not a directory)" in problem


def test_another_fetch_that_cleans_up_does_no_harm(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        if not taken:
            taken.append(path)
            path.unlink()

    monkeypatch.setattr(store, "_write", write)
    assert shell.fetch("--stage", "idea")[0] == 0


# Proxies, tokens, addresses


def test_a_proxy_is_used(
    published: Published, server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy() as (url, asked):
        monkeypatch.setenv("HTTP_PROXY", url)
        assert shell.fetch()[0] == 0
    assert len(asked) == 29
    assert all(path.startswith(server.url) for path in asked)
    assert shell.files() == needed(published)


def test_no_proxy_is_respected(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy() as (url, asked):
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert shell.fetch("--stage", "idea")[0] == 0
    assert asked == []


def test_a_proxy_that_opens_no_tunnel_is_told_without_its_password(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy() as (url, asked):
        monkeypatch.setenv("HTTPS_PROXY", url.replace("//", "//me:hidden@"))
        monkeypatch.setenv(RAW, "https://files.example")
        problem = stopped(server, shell)
    assert "the proxy in HTTPS_PROXY does not let us to files.example (403 Forbidden)" in problem
    assert "hidden" not in problem
    assert 3 <= len(asked) <= 15


def test_a_proxy_that_wants_a_password_is_told(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy(refuse=True) as (url, _):
        monkeypatch.setenv("HTTP_PROXY", url)
        problem = stopped(server, shell)
    assert "the proxy in HTTP_PROXY wants a name and password" in problem


def test_a_proxy_that_is_down_is_told(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:hidden@127.0.0.1:9")
    problem = stopped(server, shell)
    assert "check the network, and the proxy in HTTP_PROXY." in problem
    assert "hidden" not in problem


def test_the_token_goes_to_the_api_only_and_is_not_shown(
    server: Server,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    server.always = {"tasks/beta.md": answers(500)}
    caplog.set_level("DEBUG")
    said = shell.fetch()
    with_token = [
        name
        for name, headers in zip(server.asked, server.headers, strict=True)
        if "ghp_secret" in str(headers)
    ]
    assert with_token == [LISTING]
    assert server.headers[server.asked.index(LISTING)]["authorization"] == "Bearer ghp_secret"
    assert "ghp_secret" not in f"{said}{caplog.text}"


def test_the_token_does_not_follow_to_another_host(
    published: Published, server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    with github(published.files) as other:
        place = f"{other.url}/api/repos/owner/published/git/trees/{COMMIT}?recursive=1"
        server.always = {LISTING: answers(301, Location=place)}
        assert shell.fetch()[0] == 0
        assert other.asked == [LISTING]
        assert "authorization" not in other.headers[0]


@pytest.mark.parametrize("variable", [RAW, API])
@pytest.mark.parametrize(
    "value", ["example.org", "ftp://example.org", "http://", "https://[x", "/"]
)
def test_an_address_that_is_none_is_refused(
    server: Server,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    code, out, (problem,) = shell.fetch()
    assert (code, out) == (2, "")
    assert f"{variable} must be an address like https://" in problem


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTP_PROXY", "gopher://hidden"),
        ("SSL_CERT_FILE", "/hidden"),
        ("ALL_PROXY", "http://host:hidden"),
    ],
)
def test_settings_of_the_network_that_cannot_be_used_are_refused(
    server: Server,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    code, out, (problem,) = shell.fetch()
    assert (code, out) == (2, "")
    assert "the proxy or certificate that the environment names cannot be used" in problem
    assert "hidden" not in problem


@pytest.mark.parametrize("token", ["a b", "töken", "a\nb"])
def test_a_token_that_cannot_be_one_is_refused(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    code, _, (problem,) = shell.fetch()
    assert code == 2
    assert token not in problem


# What is printed, and refused


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--stage", "paper"], "3 of these 5"),
        (["--stage", "idea,paper", "--tasks", "gamma"], "1 of these 1"),
        (["--stage", "paper", "--tasks", "alpha"], ""),
        (["--stage", "proposal"], ""),
        ([], ""),
    ],
)
def test_it_is_said_for_how_many_tasks_no_results_are_published(
    server: Server, shell: Shell, words: list[str], count: str
) -> None:
    """Whoever asks for papers would find only at the run that there is nothing to start from."""
    code, last, problems = shell.fetch(*words)
    assert code == 0
    assert "0 were there" in last
    only = "mlrbench: the results that the stage paper starts from are published for the ten tasks"
    assert problems == ([f"{only} of mlrbench-10 only, and not for {count}."] if count else [])


def test_without_a_terminal_there_is_a_line_at_each_end(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "fetch", "--tasks-dir", str(tmp_path / "texts")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        f"fetching 28 files of owner/published to {tmp_path / 'texts'}",
        f"28 of 28 files are in {tmp_path / 'texts'} (28 fetched now, 0 were there)",
    ]


def test_on_a_terminal_there_is_a_bar(published: Published, server: Server, shell: Shell) -> None:
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (24, 80))
    words = ["tasks", "fetch", "--tasks-dir", str(shell.folder)]
    done = subprocess.run(
        command(published.catalogue, *words), stdout=subprocess.PIPE, stderr=its, check=True
    )
    shown = os.read(mine, 100_000).decode()
    os.close(its)
    os.close(mine)
    assert "/28 [" in shown
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stage", "ideas"], "there is no stage 'ideas'"),
        (["--stage", ","], "--stage names no stage"),
        (["--stage", ""], "--stage names no stage"),
        (["--jobs", "0"], "--jobs must be 1 to 32, not 0"),
        (["--jobs", "33"], "--jobs must be 1 to 32, not 33"),
        (["--tasks", "zeta"], "no task of suite 'mlrbench' matches 'zeta'"),
        (["--suite", "nope"], "there is no suite 'nope'"),
        (["--stage", "paper", "--tasks", "gamma", "delta"], "only, and none of these is one: --s"),
        (["--suite", "path:own"], "suite 'own' has its own texts and inputs"),
        (["--from", "huggingface", "--stage", "paper"], "has the task texts only"),
        (["--from", "huggingface", "--stage", "all"], "has the task texts only"),
    ],
)
def test_what_cannot_be_fetched_is_refused_before_anything_is_asked(
    server: Server,
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.md").write_text("Do it.")
    monkeypatch.chdir(tmp_path)
    code, out, (problem,) = shell.fetch(*words)
    assert (code, out, server.asked) == (2, "", [])
    assert said in problem


def test_without_the_extra_it_is_named(
    published: Published, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.delitem(sys.modules, "pytest_mlrbench.fetching.fetch")
    code, _, (problem,) = shell.fetch()
    assert code == 2
    assert "needs tqdm, which is not installed: pip install 'pytest-mlrbench[fetch]'." in problem


def test_a_file_nothing_is_known_of_is_not_fetched(tmp_path: Path) -> None:
    wanted = Wanted("a", tmp_path / "a", "", "")
    assert not wanted.checkable
    assert Plan((), ("a",), True).files == ()


def test_neither_a_run_nor_the_command_line_loads_the_libraries_of_the_fetch() -> None:
    code = (
        "import sys, pytest_mlrbench.plugin, pytest_mlrbench.controller, pytest_mlrbench.cli,"
        " pytest_mlrbench.fetching.verify;"
        "print({'httpx', 'tenacity', 'tqdm', 'huggingface_hub', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# The real catalogue


def real_files(data: Path) -> dict[str, bytes]:
    """The published files that are here, by their paths in the repository."""
    folders = {
        "tasks": "tasks",
        "ideas_and_proposals": "agent_results/ideas_and_proposals",
        "experiments": "agent_results/experiments_and_writeups",
    }
    return {
        f"{there}/{path.relative_to(data / here).as_posix()}": path.read_bytes()
        for here, there in folders.items()
        for path in (data / here).rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_the_published_repository_is_fetched_as_far_as_it_is_here(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (named := os.environ.get("MLRBENCH_DATA")):
        pytest.skip("MLRBENCH_DATA is not set: the published texts are not here")
    data = Path(named) / "mlrbench"
    source = load_suite("mlrbench").source
    assert source is not None
    stepwise = sorted(path.name for path in (data / "ideas_and_proposals").iterdir())
    with_results = sorted(path.name for path in (data / "experiments" / "claude").iterdir())
    with github(real_files(data), source.repository, source.commit) as running:
        set_environment(monkeypatch, running, tmp_path / "cache")
        assert shell.fetch("--stage", "idea")[1].startswith("201 of 201 files are in")
        code, last, problems = shell.fetch("--stage", "experiment", "--tasks", *stepwise)
        assert (code, last[:10], problems) == (0, "412 of 412", [])
        # Of five tasks with results, the other inputs of two are here.
        code, last, problems = shell.fetch("--tasks", *with_results)
        assert (code, last[:8], len(problems)) == (1, "79 of 88", 9)
        assert all("is not in the repository at commit 806a203" in line for line in problems)
    assert running.times(LISTING) == 1
    suite = load_suite("mlrbench", tasks_dir=shell.folder)
    assert not any(suite.missing_inputs(task, STAGES["idea"]) for task in suite.tasks)
    assert sum(not suite.missing_inputs(t, STAGES["experiment"]) for t in suite.tasks) == 103
    assert sum(not suite.missing_inputs(t, STAGES["paper"]) for t in suite.tasks) == 2
