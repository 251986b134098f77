"""What docs/architecture.md promises about the modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_mlrbench
from pytest_mlrbench.agents.specs import FORMS as AGENT_FORMS
from pytest_mlrbench.judges.specs import FORMS as JUDGE_FORMS
from pytest_mlrbench.option_table import BOTH

PACKAGE = Path(pytest_mlrbench.__file__).parent
ROOT = Path(__file__).parents[1]
ROOMS = (
    *("suites", "fetching", "agents", "models", "sandbox", "judges", "evidence", "run", "report"),
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_below_the_hooks_needs_no_pytest(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        used = {name.partition(".")[0] for name in imports(path)}
        assert not used & {"pytest", "_pytest", "xdist"}, path


def test_the_command_line_starts_without_pytest() -> None:
    code = (
        "import sys; from pytest_mlrbench.cli import main;"
        "main(['tasks', 'list', '--suite', 'mini']); print('pytest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_every_option_and_spec_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for name, _, _ in BOTH:
        assert f"--mlr-{name}" in text
    for form in (*AGENT_FORMS.split(", "), *JUDGE_FORMS.split(", ")):
        assert f"`{form}`" in text


def test_every_module_of_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert len(text.splitlines()) <= 80
    tree = text.partition("pytest_mlrbench/\n")[2].partition("```")[0]
    for line in tree.splitlines():
        name = line.split()[0]
        assert (PACKAGE / name).exists(), name


def test_no_two_plugins_of_the_tests_have_a_fixture_of_one_name() -> None:
    """The one that is loaded last would be taken, which depends on the tests that are run."""
    helpers = set((ROOT / "tests").glob("*.py")) - set((ROOT / "tests").glob("test_*.py"))
    found = [
        it.name
        for path in helpers
        for it in ast.parse(path.read_text("utf-8")).body
        if isinstance(it, ast.FunctionDef)
        and any("pytest.fixture" in ast.unparse(by) for by in it.decorator_list)
    ]
    assert "repo" in found
    assert len(found) == len(set(found)), sorted(found)
