"""A user's repository in a folder of its own, and ways to run pytest in it."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Mapping

import pytest
from files import lay

# Sessions inside this process find it loaded already, which is most of what a session takes.
import pytest_mlrbench.controller
import pytest_mlrbench.evidence.examine  # noqa: F401
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.run.folder import RunFolder

# Where a script has the tests run in its background, Ctrl-C is ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# pytest reads this file whenever it is started in the root folder, for the shipped tests as well:
# there, nothing that is installed for development only may be needed.
with contextlib.suppress(ImportError):
    from hypothesis import settings

    # A slow machine is no fault of the code.
    settings.register_profile("tests", deadline=None, max_examples=60)
    settings.load_profile("tests")

# Not in the root folder's conftest.py, which is read wherever the shipped tests are run.
pytest_plugins = ["pytester"]


class Repository:
    """A user's repository.

    Its pytest is told not to shuffle, and the one thing pytest-asyncio asks everybody to say.
    """

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = pytester.path
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        # A file written twice within a second at the same size would be read as it was before.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        self.set_addopts("-p no:randomly")

    def set_addopts(self, options: str) -> None:
        """Options of every pytest that is run here."""
        scope = "" if "no:asyncio" in options else "-o asyncio_default_fixture_loop_scope=function"
        self._monkeypatch.setenv("PYTEST_ADDOPTS", f"{options} {scope}")

    def lay(self, files: Mapping[str, str]) -> None:
        """Write files: relative path → text."""
        lay(self.path, files)

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest inside this process, which is fast."""
        return self._pytester.runpytest_inprocess(*args)

    def spawn(self, *args: str) -> pytest.RunResult:
        """Run pytest in a process of its own: under xdist, or with other plugins."""
        return self._pytester.runpytest_subprocess(*args)

    def measure(self, *args: str) -> pytest.RunResult:
        """Measure the experiments of the published system *codex*: 4 of 10 cases pass.

        There are no files and nothing to compute, so a session takes a fraction of a second.
        """
        # Under -n in a process of its own.
        start = self.spawn if any(arg.startswith("-n") for arg in args) else self.run
        return start(
            "--mlr-stage=experiment",
            "--mlr-suite=mlrbench-10",
            "--mlr-agent=published:codex",
            "--mlr-judge=published",
            *args,
        )

    @property
    def runs(self) -> list[RunFolder]:
        """The runs there are, oldest first."""
        return [RunFolder(path) for path in sorted(self.path.glob(".mlrbench/runs/2*"))]

    @property
    def report(self) -> Report:
        """What the last run says of itself."""
        return Report.of(self.runs[-1])

    def texts(self, name: str) -> dict[str, str]:
        """Task → what its submission in the last run holds under *name*."""
        found = self.runs[-1].path.glob(f"cases/*/*/r1/submission/{name}")
        task = -3 - name.count("/") - 1
        return {path.parts[task]: path.read_text("utf-8") for path in found}


@pytest.fixture
def repo(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return Repository(pytester, monkeypatch)
