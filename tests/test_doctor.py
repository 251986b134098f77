"""``mlrbench doctor``: somebody wants to know what is there, and what can be run with it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from socketserver import BaseServer, UnixStreamServer
from typing import TYPE_CHECKING, Any

import pytest
from builders import lay, write_suite

from pytest_mlrbench import __version__
from pytest_mlrbench.doctor import (
    add_parser,
    can_run_default,
    engine,
    examine,
    machine,
    probes,
    suites,
)
from pytest_mlrbench.doctor.keys import KEYS
from pytest_mlrbench.doctor.output import report
from pytest_mlrbench.doctor.probe import Finding, Probe, Seen, State
from pytest_mlrbench.doctor.python import (
    CONTAINERS,
    FETCH,
    HUGGINGFACE,
    MODELS,
    REFERENCE,
    REQUIRED,
)
from pytest_mlrbench.sandbox.options import IMAGE

if TYPE_CHECKING:
    from conftest import Repository

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A machine with Python and nothing else; returns the one folder its tools are looked for in.

    The user's cache is empty, the current folder too, and an engine has short patience.
    """
    for names in KEYS:
        for name in names:
            monkeypatch.delenv(name, raising=False)
    for name in ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "XDG_RUNTIME_DIR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("tools", "cache", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr(engine, "PATIENCE", 0.5)
    return tmp_path / "tools"


def found(name: str) -> Finding:
    """What is found of the one thing called *name*."""
    (probe,) = [probe for probe in probes() if probe.name == name]
    return probe.find()


def is_seen(seen: Finding | Seen, state: State, *words: str) -> bool:
    """Whether a look ended in *state*, with a detail that holds all *words*."""
    assert (seen.state, [word for word in words if word not in seen.detail]) == (state, []), seen
    return True


def doctor(*words: str) -> int:
    """Run the command as the command line does."""
    parser = argparse.ArgumentParser(prog="mlrbench")
    add_parser(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["doctor", *words])
    code: int = arguments.run(arguments)
    return code


def hide(monkeypatch: Patch, name: str, module: str) -> None:
    """Make it look as if the package *name* were not installed."""
    version, find_spec = metadata.version, importlib.util.find_spec

    def no_version(asked: str) -> str:
        if asked == name:
            raise metadata.PackageNotFoundError(asked)
        return version(asked)

    monkeypatch.setattr(metadata, "version", no_version)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked: None if asked == module else find_spec(asked)
    )


# What can be run


def test_the_embedded_default_can_run_here(capsys: Capture) -> None:
    assert doctor() == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == ("The embedded default can run: pytest --mlr-stage=experiment")
    assert err == ""
    titles = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert len(titles) == 13, titles


def test_without_what_the_reference_agent_needs_it_cannot(
    capsys: Capture, monkeypatch: Patch
) -> None:
    hide(monkeypatch, "scikit-learn", "sklearn")
    assert doctor() == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "The embedded default cannot run. scikit-learn: not installed."
    assert "pip install 'scikit-learn>=1.4'" in found("scikit-learn").enables


def test_what_is_not_needed_keeps_nothing_from_running(capsys: Capture, monkeypatch: Patch) -> None:
    hide(monkeypatch, "pytest-asyncio", "pytest_asyncio")
    assert is_seen(found("pytest-asyncio"), "missing", "not installed")
    assert doctor() == 0


def test_it_is_said_as_json_and_nothing_else(capsys: Capture) -> None:
    assert doctor("--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    said = json.loads(out)
    assert list(said) == ["version", "can_run_default", "findings"]
    assert (said["version"], said["can_run_default"]) == (__version__, True)
    keys = ["area", "name", "state", "detail", "enables", "needed"]
    for finding in said["findings"]:
        assert list(finding) == keys
        assert finding["state"] in ("ok", "missing", "broken")
        assert all(finding[key] for key in keys[:-1]), finding
    names = [finding["name"] for finding in said["findings"]]
    assert len(set(names)) == len(names)


def test_json_says_that_it_cannot_run(capsys: Capture, monkeypatch: Patch) -> None:
    hide(monkeypatch, "matplotlib", "matplotlib")
    assert doctor("--json") == 1
    assert json.loads(capsys.readouterr().out)["can_run_default"] is False


def test_an_unknown_option_exits_with_2() -> None:
    with pytest.raises(SystemExit) as caught:
        doctor("--yaml")
    assert caught.value.code == 2


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from pytest_mlrbench.doctor import examine; examine();"
        "print(sorted({'pytest', 'sklearn', 'numpy', 'matplotlib', 'httpx', 'huggingface_hub'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# The text


def finding(name: str, state: State = "ok", detail: str = "1.0", area: str = "python") -> Finding:
    return Finding(area, name, state, detail, "Use it.", needed=True)


def test_a_person_reads_it_by_area_with_a_mark_each() -> None:
    findings = [
        finding("Python"),
        finding("pytest-xdist", "missing", "not installed"),
        finding("git", "broken", "it is on fire", area="machine"),
    ]
    assert report(findings).splitlines() == [
        f"pytest-mlrbench {__version__}",
        "",
        "Python",
        "  ok  Python        1.0 - Use it.",
        "  --  pytest-xdist  not installed - Use it.",
        "",
        "this machine",
        "  !!  git           it is on fire - Use it.",
        "",
        "ok there, -- missing, !! broken",
        "The embedded default cannot run. pytest-xdist: not installed; git: it is on fire.",
    ]


@pytest.mark.parametrize(("columns", "width"), [(40, 72), (80, 80), (300, 100)])
def test_long_findings_are_wrapped(monkeypatch: Patch, columns: int, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = report([finding("Python", detail="word " * 40)]).splitlines()
    assert width - 5 <= max(len(line) for line in lines) <= width
    assert lines[4].startswith(" " * len("  ok  Python  ") + "word")


def test_a_terminal_that_lacks_letters_is_no_fault(tmp_path: Path) -> None:
    folder = tmp_path / "caf\u00e9"
    folder.mkdir()
    code = (
        "from pytest_mlrbench.doctor import examine; from pytest_mlrbench.doctor.output import *;"
        "print(report(examine()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        check=True,
    )
    assert rb"caf\xe9" in done.stdout


# Looks that go wrong


def test_an_error_nobody_has_thought_of_is_a_finding(capsys: Capture, monkeypatch: Patch) -> None:
    def burn(path: object) -> None:
        raise RuntimeError("the disk is on fire\nand so is the house \x1b[31m")

    monkeypatch.setattr(shutil, "disk_usage", burn)
    assert doctor() == 1
    out = capsys.readouterr().out
    assert "disk: RuntimeError: the disk is on fire and so is the house ?[31m." in out


def test_a_look_that_hangs_is_given_up(monkeypatch: Patch) -> None:
    monkeypatch.setattr("pytest_mlrbench.doctor.probe.PATIENCE", 0.1)
    end = threading.Event()

    def hang() -> Seen:
        end.wait(60)
        return Seen("ok", "at last")

    seen = Probe(area="machine", name="disk", look=hang).find()
    end.set()
    assert is_seen(seen, "broken", "no answer within 0.1 s")


def test_what_is_said_at_length_is_cut() -> None:
    seen = Probe(area="machine", name="git", look=lambda: Seen("ok", "x" * 5000)).find()
    assert len(seen.detail) == 300


def test_a_folder_that_is_gone_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")  # `bare` goes back
    (tmp_path / "gone").rmdir()
    findings = examine()
    assert not can_run_default(findings)
    assert [f.name for f in findings if f.needed and f.state != "ok"] == ["disk"]


# Python and packages


def test_versions_are_those_that_are_installed() -> None:
    assert is_seen(found("Python"), "ok", ".".join(map(str, sys.version_info[:3])))
    assert is_seen(found("pytest"), "ok", pytest.__version__)
    assert is_seen(found("PyYAML"), "ok", metadata.version("PyYAML"))


def test_the_oldest_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for packages, wanted in (
        (REQUIRED, project["dependencies"]),
        (REFERENCE, project["optional-dependencies"]["reference"]),
        (FETCH, project["optional-dependencies"]["fetch"]),
        (HUGGINGFACE, project["optional-dependencies"]["huggingface"]),
        (CONTAINERS, project["optional-dependencies"]["docker"]),
        (MODELS, [one for e in ("models", "pdf") for one in project["optional-dependencies"][e]]),
    ):
        ours = {f"{package.name}>={package.minimum}" for package in packages}
        said = {one.partition(",")[0] for one in wanted if not one.startswith("pytest-mlrbench")}
        # One package is looked for once: tenacity is among those of fetching.
        assert ours | {"tenacity>=8.3"} == said | {"tenacity>=8.3"}


@pytest.mark.parametrize(
    ("version", "state"),
    [("8.3.5", "broken"), ("8.4", "ok"), ("8.4.0rc1", "ok"), ("8.10", "ok"), ("10.0", "ok")],
)
def test_a_version_that_is_too_old_is_broken(
    monkeypatch: Patch, version: str, state: State
) -> None:
    installed = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: version if name == "pytest" else installed(name)
    )
    seen = found("pytest")
    assert is_seen(seen, state, version)
    assert ("pip install 'pytest>=8.4'" in seen.enables) == (state == "broken")


def test_an_old_python_is_broken(monkeypatch: Patch) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.9.18")
    assert is_seen(found("Python"), "broken", "3.9.18 is older than 3.11")


def test_windows_is_sent_to_wsl(monkeypatch: Patch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    assert is_seen(found("system"), "broken", "Windows")
    assert "WSL" in found("system").enables


def test_optional_packages_are_found_by_what_pip_has_left(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    lay(
        tmp_path / "site",
        {
            "docker-7.2.0.dist-info/METADATA": "Name: docker\nVersion: 7.2.0\n",
            "docker/__init__.py": "raise SystemExit('I am heavy')",
            "google_genai-3.6.1.dist-info/METADATA": "Name: google-genai\nVersion: 3.6.1\n",
            "google/genai/__init__.py": "",
            "anthropic-2.0.dist-info/METADATA": "Name: anthropic\nVersion: 2.0\n",
            "openai.py": "",
        },
    )
    (tmp_path / "site" / "pandas").mkdir()  # a folder of the user's own
    # Only these, whatever is installed here or has been imported by other tests.
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    for name in list(sys.modules):
        if name.partition(".")[0] in ("anthropic", "docker", "google", "openai", "pandas"):
            monkeypatch.delitem(sys.modules, name)
    try:
        assert is_seen(found("docker"), "ok", "7.2.0")
        assert is_seen(found("google-genai"), "ok", "3.6.1")
        assert is_seen(found("anthropic"), "broken", "2.0", "there is no anthropic")
        assert "`pip install --force-reinstall 'anthropic>=2'`" in found("anthropic").enables
        assert is_seen(found("openai"), "ok", "version unknown")
        assert is_seen(found("pandas"), "missing")
    finally:
        sys.modules.pop("google", None)


# Keys


SECRETS = {
    "ANTHROPIC_API_KEY": "Zq7xWv-93kLmPp04Jh",
    "OPENAI_API_KEY": "  %s{Yc5}\\u0041uR8'\"Tn2 ",
    "OPENALEX_API_KEY": "Ke7xQ9Lw2",
    "GEMINI_API_KEY": "Ke6\x1b[31mBd1\nFs9\tGx3",
    "GOOGLE_API_KEY": "\u00fcN4\udcff\u202eVb0\u2028Mj7",
    "GITHUB_TOKEN": "ghp_Hw2Qe8Ra5Ty1",
    "HF_TOKEN": "$(Uo3)`Ia6`<Sd9>&Df4;",
}


def test_no_part_of_a_key_is_shown(bare: Path, capsys: Capture, monkeypatch: Patch) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    # Tools whose words are repeated are given none to repeat.
    words = " ".join(f"${name}" for name in SECRETS)
    for name in ("nvidia-smi", "git"):
        install(bare / name, f"echo key: {words}; exit 3")
    assert doctor() == 0
    text = "".join(capsys.readouterr())
    assert doctor("--json") == 0
    out, err = capsys.readouterr()
    findings = json.loads(out)["findings"]
    shown = "\n".join([text, out, err, *(finding["detail"] for finding in findings)])
    assert "exit code 3: key:" in shown
    for secret in SECRETS.values():
        parts = [secret[start : start + 4] for start in range(len(secret) - 3)]
        assert [part for part in parts if part in shown] == []
    assert [found["detail"] for found in findings if found["area"] == "keys"] == ["set"] * 6


def test_a_key_that_is_not_set_or_blank_is_told_apart(monkeypatch: Patch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " \t\n")
    monkeypatch.setenv("HF_TOKEN", "")
    assert is_seen(found("OPENAI_API_KEY"), "broken", "set but blank")
    assert is_seen(found("HF_TOKEN"), "broken", "set but blank")
    assert is_seen(found("ANTHROPIC_API_KEY"), "missing", "not set")
    assert is_seen(found("GITHUB_TOKEN"), "missing", "not set")


def test_one_of_googles_two_keys_is_enough(monkeypatch: Patch) -> None:
    assert is_seen(found("GOOGLE_API_KEY"), "missing", "not set, nor is GEMINI_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", "")
    assert is_seen(found("GOOGLE_API_KEY"), "broken", "GEMINI_API_KEY is set but blank")
    monkeypatch.setenv("GOOGLE_API_KEY", "")
    monkeypatch.setenv("GEMINI_API_KEY", "abc")
    assert is_seen(found("GOOGLE_API_KEY"), "ok", "set, as GEMINI_API_KEY")


# The container engine


DOCKER = {"Version": "28.2.2", "Components": [{"Name": "Engine", "Version": "28.2.2"}]}
PODMAN = {"Version": "5.4.0", "Components": [{"Name": "Podman Engine", "Version": "5.4.0"}]}


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(
    version: Any, ping: int = 200, images: Mapping[str, int] | None = None
) -> type[BaseHTTPRequestHandler]:
    """A handler of what doctor asks an engine.

    :param images: name → status with which it answers for an image.
    """
    statuses = {"/_ping": ping, "/version": 200}
    statuses |= {f"/images/{name}/json": status for name, status in (images or {}).items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_ping = self.path == "/_ping"
            body = b"OK" if is_ping else json.dumps(version).encode()
            self.send_response(statuses.get(self.path, 404))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    return Handler


@pytest.fixture
def place(monkeypatch: Patch) -> Iterator[Path]:
    """Where the engine's socket is looked for: the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="mlr", dir="/tmp") as folder:
        monkeypatch.setattr(engine, "SOCKET", Path(folder, "docker.sock"))
        yield Path(folder, "docker.sock")


@pytest.fixture
def listening(place: Path) -> Iterator[socket.socket]:
    """A socket on which nobody has answered yet."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        yield listener


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (DOCKER, "Docker 28.2.2"),
        (PODMAN, "Podman 5.4.0"),
        ({"Version": "1.0"}, "Docker 1.0"),
        ({}, "an engine of unknown version"),
        ([], "an engine of unknown version"),
        ({"Version": "1", "Components": {"Name": "Engine"}}, "an engine of unknown version"),
    ],
)
def test_an_engine_that_answers_is_named(place: Path, version: Any, words: str) -> None:
    with serving(UnixStreamServer(str(place), answering(version))):
        assert is_seen(found("engine"), "ok", f"{words} answers at {place}")


def test_a_rootless_engine_is_found_in_the_runtime_folder(place: Path, monkeypatch: Patch) -> None:
    (place.parent / "user").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place.parent / "user"))
    assert is_seen(found("engine"), "missing", str(place), "user/docker.sock")
    with (
        socket.socket(socket.AF_UNIX) as stale,
        serving(UnixStreamServer(str(place.parent / "user/docker.sock"), answering(DOCKER))),
    ):
        stale.bind(str(place))  # the usual socket is no hindrance though nobody listens there
        assert is_seen(found("engine"), "ok", "user/docker.sock")
    assert is_seen(found("engine"), "broken", f"nothing answers at {place}")


@pytest.mark.parametrize(
    "host", ["tcp://127.0.0.1:{}", "127.0.0.1:{}", "tcp://u:Xy7z@127.0.0.1:{}"]
)
def test_an_engine_that_no_run_would_take_is_none(
    monkeypatch: Patch, repo: Repository, host: str
) -> None:
    """It may answer, and be on this machine: what runs say of it is what counts."""
    server = HTTPServer(("127.0.0.1", 0), answering(DOCKER, images={IMAGE: 200}))
    monkeypatch.setenv("DOCKER_HOST", host.format(server.server_port))
    with serving(server):
        seen, image = found("engine"), found("image")
        run = repo.run("--mlr-stage=experiment", "--mlr-agent=cmd:true", "--mlr-limit=1")
    assert is_seen(seen, "broken", "no socket of this machine")
    assert "unix://" in seen.enables
    assert "Xy7z" not in seen.detail + seen.enables
    assert is_seen(image, "missing", "there is no engine to ask")
    run.stderr.fnmatch_lines(["ERROR: DOCKER_HOST names no socket of this machine, *"])
    run.stderr.no_fnmatch_line("*Xy7z*")


def test_docker_host_may_be_a_socket(place: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(engine, "SOCKET", Path("/nowhere"))
    hosts = [f"unix://{place}", str(place)]
    for host in hosts:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert is_seen(found("engine"), "missing", f"there is no socket {place}")
    with serving(UnixStreamServer(str(place), answering(DOCKER))):
        for host in hosts:
            monkeypatch.setenv("DOCKER_HOST", host)
            assert is_seen(found("engine"), "ok", str(place))


@pytest.mark.parametrize(
    "host",
    [
        *("ssh://me@far", "https://far:2376", "npipe:////./pipe/docker_engine"),
        *("tcp://far:Xy7z", "tcp://far away:2375", "tcp://[::1"),
    ],
)
def test_an_engine_elsewhere_is_not_asked(monkeypatch: Patch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    seen = found("engine")
    assert is_seen(seen, "broken", "no socket of this machine")
    assert "Xy7z" not in seen.detail


@pytest.mark.usefixtures("listening")
def test_an_engine_that_hangs_is_given_up(place: Path) -> None:
    assert is_seen(found("engine"), "broken", f"nothing answers at {place} within 0.5 s")


def test_an_engine_that_never_ends_its_answer_is_given_up(
    place: Path, listening: socket.socket
) -> None:
    given_up = threading.Event()

    def dribble() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nA: ")
            while not given_up.wait(0.05):
                connection.sendall(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    seen = found("engine")
    given_up.set()
    thread.join()
    assert is_seen(seen, "broken", f"nothing answers at {place} within 0.5 s")


def test_an_engine_that_hangs_up_does_not_answer(place: Path, listening: socket.socket) -> None:
    def hang_up() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)

    thread = threading.Thread(target=hang_up)
    thread.start()
    assert is_seen(found("engine"), "broken", f"nothing answers at {place}")
    thread.join()


def test_another_server_is_no_engine(place: Path) -> None:
    with serving(UnixStreamServer(str(place), answering(DOCKER, ping=404))):
        assert is_seen(found("engine"), "broken", "is no engine", "status 404")


@pytest.mark.parametrize(
    ("images", "state", "detail", "advice"),
    [
        ({IMAGE: 200}, "ok", f"the engine has {IMAGE}", "--mlr-image names another"),
        ({"other": 200}, "missing", f"the engine has no {IMAGE}", f"docker build -t {IMAGE} -f"),
        ({IMAGE: 500}, "broken", "answers with status 500", ""),
    ],
)
def test_whether_the_engine_has_the_image_of_a_run(
    place: Path, images: dict[str, int], state: State, detail: str, advice: str
) -> None:
    """The embedded default needs none."""
    with serving(UnixStreamServer(str(place), answering(DOCKER, images=images))):
        assert found("engine").state == "ok"
        seen = found("image")
    assert is_seen(seen, state, detail)
    assert advice in seen.enables
    assert not seen.needed


def test_without_an_engine_there_is_no_image(place: Path) -> None:
    assert is_seen(found("image"), "missing", "no engine to ask")
    with serving(UnixStreamServer(str(place), answering(DOCKER, ping=404))):
        assert is_seen(found("image"), "missing", "no engine to ask")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
@pytest.mark.usefixtures("listening")
def test_a_socket_of_somebody_elses_says_permission(place: Path) -> None:
    place.chmod(0)
    assert is_seen(found("engine"), "broken", f"no permission for {place}")


def test_no_permission_is_told_apart_whoever_asks(monkeypatch: Patch) -> None:
    def refuse(self: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine._UnixConnection, "connect", refuse)
    seen = found("engine")
    assert is_seen(seen, "broken", "no permission for")
    assert "group" in seen.enables


# GPUs and git


def install(path: Path, script: str) -> None:
    """Put a tool on the PATH."""
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)


def test_gpus_are_counted_by_kind(bare: Path) -> None:
    install(
        bare / "nvidia-smi",
        """[ "$*" = "--query-gpu=index,name,memory.total --format=csv,noheader" ] || exit 5
echo "0, NVIDIA H200, 143771 MiB"
echo "1, NVIDIA H200, 143771 MiB"
echo "2, NVIDIA RTX A2000, 12 GB, 12282 MiB"
echo "a warning" >&2""",
    )
    assert is_seen(
        found("GPUs"),
        "ok",
        "3 found: 2 x NVIDIA H200 (143771 MiB), 1 x NVIDIA RTX A2000, 12 GB (12282 MiB)",
    )


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("", "missing", "finds none"),
        ("echo No devices were found", "missing", "finds none"),
        ("echo No devices were found; exit 6", "missing", "finds none"),
        (
            "echo; echo NVIDIA-SMI has failed; echo really; exit 9",
            "broken",
            "nvidia-smi failed with exit code 9: NVIDIA-SMI has failed",
        ),
        ("echo no driver >&2; exit 1", "broken", "exit code 1: no driver"),
        ("exit 1", "broken", "exit code 1: it says nothing"),
        ("kill -9 $$", "broken", "exit code -9"),
        ("echo '<html>'", "broken", "no list of GPUs: <html>"),
        (r"printf '0, \377, 1 MiB\n'", "ok", "1 x \ufffd (1 MiB)"),
    ],
)
def test_a_tool_without_gpus_says_why(bare: Path, script: str, state: State, words: str) -> None:
    install(bare / "nvidia-smi", script)
    assert is_seen(found("GPUs"), state, words)


def test_a_tool_that_hangs_is_cut_off(bare: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine, "PATIENCE", 0.3)
    install(bare / "nvidia-smi", "exec /bin/sleep 60")
    assert is_seen(found("GPUs"), "broken", "nvidia-smi did not end within 0.3 s")


def test_a_tool_that_cannot_be_started_is_broken(bare: Path) -> None:
    (bare / "nvidia-smi").write_bytes(b"\x7fELF of another machine")
    (bare / "nvidia-smi").chmod(0o755)
    assert is_seen(found("GPUs"), "broken", "nvidia-smi cannot be started")


def test_a_machine_without_tools_lacks_them() -> None:
    assert is_seen(found("GPUs"), "missing", "no nvidia-smi")
    assert is_seen(found("git"), "missing", "not on the PATH")


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("echo git version 2.39.5", "ok", "2.39.5"),
        ("echo no developer tools >&2; exit 1", "broken", "no developer tools"),
        ("", "ok", "unknown version"),
    ],
)
def test_git_says_its_version(bare: Path, script: str, state: State, words: str) -> None:
    install(bare / "git", script)
    assert is_seen(found("git"), state, words)


# Disk, cores and memory


def test_the_disk_is_that_of_the_run_folders(tmp_path: Path) -> None:
    assert is_seen(found("disk"), "ok", "GB free for", str(tmp_path / "work/.mlrbench/runs"))
    assert not (tmp_path / "work/.mlrbench").exists()


def test_another_folder_can_be_asked_about(tmp_path: Path) -> None:
    (disk,) = [finding for finding in examine(tmp_path / "else") if finding.name == "disk"]
    assert is_seen(disk, "ok", str(tmp_path / "else/.mlrbench/runs"))


def test_a_full_disk_is_broken(monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine, "ENOUGH", float("inf"))
    seen = found("disk")
    assert is_seen(seen, "broken", "GB free")
    assert "--mlr-out=DIR" in seen.enables


def test_a_file_in_the_way_is_broken(tmp_path: Path) -> None:
    lay(tmp_path / "work", {".mlrbench": ""})
    assert is_seen(found("disk"), "broken", ".mlrbench is not a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_folder_that_cannot_be_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / "work").chmod(0o555)
    assert is_seen(found("disk"), "broken", "cannot be written")


def test_cores_and_memory_are_counted() -> None:
    assert re.fullmatch(r"\d+", found("cores").detail)
    assert re.fullmatch(r"[\d.]+ GB, of which [\d.]+ GB free", found("memory").detail)


# Suites


def test_the_bundled_suite_is_whole() -> None:
    mini = found("mini")
    counts = "idea 6, proposal 6, experiment 6, paper 6, end_to_end 6"
    assert is_seen(mini, "ok", f"of 6: {counts}")
    assert "--mlr-stage=all" in mini.enables


@pytest.mark.parametrize(("name", "size"), [("mlrbench-10", 10), ("mlrbench", 201)])
def test_texts_that_are_not_there_are_to_be_fetched(name: str, size: int) -> None:
    seen = found(name)
    assert is_seen(seen, "missing", f"of {size}: idea 0,")
    assert "mlrbench tasks fetch" in seen.enables


def test_stages_with_all_inputs_are_named(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "own", "name: own\n", "id,title\nfirst,One\nsecond,Two\n")
    lay(folder, {"tasks/first.md": "# One\n", "tasks/second.md": "# Two\n"})
    lay(folder / "inputs/first", {"idea.md": "i", "related_work.md": "r"})
    seen = suites.look(f"path:{folder}")
    counts = "idea 2, proposal 1, experiment 0, paper 0, end_to_end 2"
    assert is_seen(seen, "ok", f"of 2: {counts}")
    assert "--mlr-stage=idea,end_to_end;" in seen.advice


def test_a_damaged_installation_is_said_to_be_one(
    tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    folder = write_suite(tmp_path / "own", "name: own\n", "id,title\nfirst,One\nsecond,Two\n")
    lay(folder, {"tasks/first.md": "# One\n", "tasks/second.md": "# Two\n"})
    monkeypatch.setattr(suites, "DEFAULT", f"path:{folder}")
    monkeypatch.setattr(suites, "SUITES", (f"path:{folder}",))
    assert doctor() == 1
    out = capsys.readouterr().out
    assert "experiment 0" in out.splitlines()[-1]
    assert "again" in out


def test_a_suite_that_cannot_be_read_says_it_in_its_own_words(monkeypatch: Patch) -> None:
    monkeypatch.setattr(suites, "SUITES", ("path:nowhere",))
    (seen,) = [finding for finding in examine() if finding.area == "suites"]
    assert is_seen(seen, "broken", "nowhere")
    assert "InputError" not in seen.detail
