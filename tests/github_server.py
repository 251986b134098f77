"""A published repository made for tests, and local servers that hand it out, also badly."""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import pytest
from files import lay

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "owner/published"
LISTING = "the list of files"

_ABOUT = f"""\
name: mlrbench
title: MLR-Bench
benchmark: {{name: MLR-Bench, tasks: 5}}
source: {{repository: {REPOSITORY}, commit: {COMMIT}, dataset: owner/texts, run: claude}}
"""
_TEN = "name: mlrbench-10\nof: mlrbench\ntasks: {}\n"
_RUN = "agent_results/experiments_and_writeups/claude"
#: What a fake repository has for a task beside its text; the fetch is given none of the last three.
_STEPS = ("idea.md", "related_work.md", "proposal.md")
_RESULTS = ("results.md", "log.txt", "figures/recall@10 of all.png", "curve.PNG")
_OTHERS = ("paper_claude.md", "results.json")


class Published:
    """A repository of five tasks, the first two with results, and the catalogue that knows it.

    The content of the first task's inputs is known beforehand, that of the others' is not.

    :param binary: whether the files are no text.
    """

    ids: ClassVar = ("alpha", "beta", "gamma", "delta", "epsilon")
    ten: ClassVar = ("alpha", "beta")

    def __init__(self, folder: Path, *, binary: bool = True) -> None:
        self.catalogue = folder
        self._end = b"\n\x00\xff" if binary else b"\n"
        self.files: dict[str, bytes] = {"README.md": b"readme", "a b/c@d.txt": b"other"}
        for task in self.ids:
            self._add(f"tasks/{task}.md", task)
            for name in (*_STEPS, "idea/idea_claude.md"):
                self._add(f"agent_results/ideas_and_proposals/{task}/{name}", task)
        for task in self.ten:
            for name in (*_RESULTS, *_OTHERS):
                self._add(f"{_RUN}/{task}/results/{name}", task)
            self._add(f"{_RUN}/{task}/claude_code/results/plot.png", task)
        known = [path for path in self.needed() if "/alpha/" in path]
        lay(
            folder / "suites",
            {
                "mlrbench/suite.yaml": _ABOUT,
                "mlrbench/tasks.csv": _table(
                    ("id", "title", "sha256"),
                    ((t, t.title(), self.sha256(f"tasks/{t}.md")) for t in self.ids),
                ),
                "mlrbench/inputs.csv": _table(
                    ("path", "sha256"), ((path, self.sha256(path)) for path in known)
                ),
                "mlrbench-10/suite.yaml": _TEN.format(list(self.ten)),
            },
        )

    def _add(self, path: str, task: str) -> None:
        self.files[path] = f"{path} of {task}\n".encode() + self._end

    def needed(self, *tasks: str) -> list[str]:
        """Paths of all files that stages start from."""
        return [
            path
            for path in self.files
            if path.startswith(("tasks/", "agent_results"))
            and not path.endswith((*_OTHERS, "idea_claude.md", "plot.png"))
            and (not tasks or any(f"/{task}" in path for task in tasks))
        ]

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()

    def listing(self) -> dict[str, object]:
        return make_listing(self.files)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def make_listing(files: Mapping[str, bytes]) -> dict[str, object]:
    """What GitHub answers when asked for the files of a commit."""
    folders = {str(parent) for path in files for parent in Path(path).parents} - {"."}
    trees = [{"path": path, "mode": "040000", "type": "tree", "sha": "0" * 40} for path in folders]
    blobs = [
        {
            "path": path,
            "mode": "100644",
            "type": "blob",
            "sha": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
            "size": len(data),
        }
        for path, data in files.items()
    ]
    return {"sha": COMMIT, "tree": trees + blobs, "truncated": False}


# Faults: each is given the handler and the right answer, and answers otherwise.

Fault = Callable[[BaseHTTPRequestHandler, bytes], None]


def answers(status: int, body: bytes = b"", **headers: str) -> Fault:
    """Another status; of header names, ``_`` stands for ``-``."""

    def fault(handler: BaseHTTPRequestHandler, right: bytes) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        _send(handler, status, body, named)

    return fault


def corrupt(handler: BaseHTTPRequestHandler, right: bytes) -> None:
    """Other content of the same length."""
    _send(handler, 200, right[:-1] + b"!", {})


def truncate(handler: BaseHTTPRequestHandler, right: bytes) -> None:
    """The connection ends before the content does."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(right)))
    handler.end_headers()
    handler.wfile.write(right[: len(right) // 2])
    handler.wfile.flush()
    handler.close_connection = True


def hang(handler: BaseHTTPRequestHandler, right: bytes) -> None:
    """No answer, until the client has lost its patience."""
    time.sleep(20)
    handler.close_connection = True


def _send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


# Servers


@dataclass
class Server:
    """A server's record of what it was asked, and what it is to do wrong."""

    url: str = ""
    #: Path in the repository (or LISTING, or any path) → content.
    content: dict[str, bytes] = field(default_factory=dict)
    #: The same → faults, one for each request; the last of a tuple stays.
    once: dict[str, list[Fault]] = field(default_factory=dict)
    always: dict[str, Fault] = field(default_factory=dict)
    #: What was asked for, in order, and with which headers.
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    #: Paths as they were sent.
    raw: list[str] = field(default_factory=list)
    #: Seconds every answer takes, and how many were in flight at once at most.
    delay: float = 0.0
    flying: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def times(self, name: str) -> int:
        """How often a file was asked for."""
        return self.asked.count(name)


@contextmanager
def serving(
    server: Server, name_of: Callable[[str], str], secure: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Serve until the block ends; *name_of* gives what a path stands for."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = name_of(self.path)
            with server.lock:
                server.asked.append(name)
                server.headers.append({key.lower(): value for key, value in self.headers.items()})
                server.raw.append(self.path)
                server.flying += 1
                server.most = max(server.most, server.flying)
                left = server.once.get(name)
                fault = left.pop(0) if left else server.always.get(name, server.always.get("*"))
            try:
                time.sleep(server.delay)
                right = server.content.get(name)
                if fault:
                    fault(self, right or b"")
                elif right is None:
                    _send(self, 404, b"404: Not Found", {})
                else:
                    etag = hashlib.sha1(right).hexdigest()
                    _send(self, 200, right, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
            except OSError:
                self.close_connection = True  # the client has left
            finally:
                with server.lock:
                    server.flying -= 1

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with _running(Handler, secure) as url:
        server.url = url
        yield server


@contextmanager
def _running(
    handler: type[BaseHTTPRequestHandler], secure: ssl.SSLContext | None = None
) -> Iterator[str]:
    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """A client that leaves is what is tested here."""

    with Quiet(("127.0.0.1", 0), handler) as httpd:
        if secure:
            httpd.socket = secure.wrap_socket(
                httpd.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}"
        finally:
            httpd.shutdown()
            thread.join()


def github_name(repository: str, commit: str) -> Callable[[str], str]:
    """What a path of either host stands for."""

    def name(path: str) -> str:
        if path == f"/api/repos/{repository}/git/trees/{commit}?recursive=1":
            return LISTING
        return unquote(urlsplit(path).path).removeprefix(f"/raw/{repository}/{commit}/")

    return name


@contextmanager
def github(
    files: Mapping[str, bytes], repository: str = REPOSITORY, commit: str = COMMIT
) -> Iterator[Server]:
    """Both hosts of GitHub, under ``/raw`` and ``/api``."""
    listing = json.dumps(make_listing(files)).encode()
    server = Server(content={**files, LISTING: listing})
    with serving(server, github_name(repository, commit)) as server:
        yield server


@contextmanager
def forward_proxy(refuse: bool = False) -> Iterator[tuple[str, list[str]]]:
    """A proxy that passes plain requests on, and opens no tunnels; with a list of its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            if refuse:
                return _send(self, 407, b"", {})
            url = urlsplit(self.path)
            server = http.client.HTTPConnection(str(url.hostname), url.port)
            server.request("GET", self.path.partition(url.netloc)[2])
            answer = server.getresponse()
            _send(self, answer.status, answer.read(), {})
            return server.close()

        def do_CONNECT(self) -> None:
            asked.append(self.path)
            _send(self, 403, b"", {})
            self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    with _running(Handler) as url:
        yield url, asked


# The environment a fetch runs in


def set_environment(monkeypatch: pytest.MonkeyPatch, server: Server, cache: Path) -> None:
    """Nothing of the machine's own, and the server in place of both hosts."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("MLRBENCH_GITHUB_RAW_URL", f"{server.url}/raw")
    monkeypatch.setenv("MLRBENCH_GITHUB_API_URL", f"{server.url}/api/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    import certifi  # which comes with httpx

    # One authority is read in no time, all of them take longer than most tests.
    first, end, _ = (
        Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----\n")
    )
    authority = lay(cache.parent, {"authority.pem": first + end}) / "authority.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))


_PROGRAM = """\
import sys
from pathlib import Path
from pytest_mlrbench.suites import loading
loading.shipped = lambda name: Path(sys.argv[1])
from pytest_mlrbench.cli import main
sys.exit(main(sys.argv[2:]))
"""


def command(catalogue: Path, *words: str) -> list[str]:
    """``mlrbench`` in a process of its own, with another catalogue."""
    return [sys.executable, "-c", _PROGRAM, str(catalogue), *words]


def parts(root: Path) -> list[Path]:
    """What is left half written."""
    return [
        Path(where, name) for where, _, names in os.walk(root) for name in names if ".part" in name
    ]
