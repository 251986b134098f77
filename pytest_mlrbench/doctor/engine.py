"""The container engine: Docker, or Podman answering as Docker does, asked over its own socket."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from pytest_mlrbench.doctor.probe import Probe, Seen, within

#: Seconds an engine has for an answer.
PATIENCE = 2.0
SOCKET = Path("/var/run/docker.sock")
_START = "Start Docker or Podman's socket, or name an engine by DOCKER_HOST."


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


_Connect = Callable[[], HTTPConnection]


def probe() -> Probe:
    """Return the look at DOCKER_HOST or, without it, at the usual sockets."""
    return Probe(
        area="machine", name="engine", look=_look, enables="Agents are run in its containers."
    )


def _look() -> Seen:
    host = os.environ.get("DOCKER_HOST", "").strip()
    if host:
        return _look_at_host(host)
    places = [SOCKET]
    if runtime := os.environ.get("XDG_RUNTIME_DIR", "").strip():
        places.append(Path(runtime, "docker.sock"))
    seen = [_look_at_socket(str(place)) for place in places]
    # The one that works, or else the one that is at least there: it is what wants mending.
    for state in ("ok", "broken"):
        for one in seen:
            if one.state == state:
                return one
    where = " or ".join(str(place) for place in places)
    return Seen("missing", f"there is no socket {where}", _START)


def _look_at_host(host: str) -> Seen:
    """Look at the engine DOCKER_HOST names; a user and a password in it are not repeated."""
    scheme, found, address = host.partition("://")
    if not found:  # docker takes a bare address so
        scheme, address = "tcp", host
    if scheme == "unix":
        return _look_at_socket(address or str(SOCKET))
    if scheme not in ("tcp", "http") or os.environ.get("DOCKER_TLS_VERIFY"):
        how = "TLS" if scheme in ("tcp", "http", "https") else f"{scheme[:20]}://"
        return Seen(
            "broken",
            f"DOCKER_HOST is reached by {how}, which mlrbench doctor does not speak",
            "Ask it yourself: `docker version`.",
        )
    try:
        url = urlsplit(f"//{address}")
        name, port = url.hostname or "localhost", url.port or 2375
        HTTPConnection(name, port)  # which connects to nothing yet, but reads the name
    except (ValueError, HTTPException):
        return Seen("broken", "DOCKER_HOST is no address", "Write it as tcp://HOST:PORT.")
    return _ask(f"{name}:{port}", lambda: HTTPConnection(name, port, timeout=PATIENCE))


def _look_at_socket(path: str) -> Seen:
    return _ask(path, lambda: _UnixConnection(path, PATIENCE))


def _ask(where: str, connect: _Connect) -> Seen:
    """Ask the engine at *where* for a sign of life, and then for its version."""
    try:
        within(PATIENCE, partial(_get, connect, "/_ping"))
    except (FileNotFoundError, NotADirectoryError):
        return Seen("missing", f"there is no socket {where}", _START)
    except PermissionError:
        return Seen(
            "broken",
            f"no permission for {where}",
            "Join the group that owns the socket, or use a rootless engine.",
        )
    except TimeoutError:
        return Seen("broken", f"nothing answers at {where} within {PATIENCE:g} s", _START)
    except ConnectionError:
        return Seen("broken", f"nothing answers at {where}", _START)
    except HTTPException as error:
        return Seen("broken", f"what answers at {where} is no engine: {error}", _START)
    except OSError as error:  # a host without an address, a network without a route
        return Seen("broken", f"{where} is not reached: {error.strerror or error}", _START)
    return Seen("ok", f"{_version(connect)} answers at {where}")


def _get(connect: _Connect, path: str) -> bytes:
    """Return the body of an answer.

    :raises OSError: there is nobody to ask.
    :raises HTTPException: the answer is not one of an engine.
    """
    connection = connect()
    try:
        connection.request("GET", path)
        with connection.getresponse() as response:
            if response.status != 200:
                raise HTTPException(f"GET {path} is answered with status {response.status}")
            return response.read(1 << 20)
    finally:
        connection.close()


def _version(connect: _Connect) -> str:
    """``Docker 28.2.2``; an engine that says nothing of itself works all the same."""
    try:
        about = json.loads(within(PATIENCE, partial(_get, connect, "/version")))
        parts = about.get("Components") or [{}]
        name = "Podman" if "podman" in str(parts[0].get("Name")).lower() else "Docker"
        return f"{name} {about['Version']}"
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
        return "an engine of unknown version"
