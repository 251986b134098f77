"""The programs of a run as trees: where they begin, and which options they were given."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Command, Finding, Source
from pytest_mlrbench.evidence.code_taint import module_of

#: Steps for one program and for all; programs; letters of one.
STEPS, ALL_STEPS, PROGRAMS, LONGEST_TEXT = 50_000, 160_000, 12, 400_000


_OPTION = re.compile(r"(?<![\w-])--([A-Za-z][\w-]{0,60})")


_REPORTS = ("results.md", "paper.md")


def parsed(sources: Sequence[Source]) -> tuple[dict[str, tuple[str, ast.Module]], list[str]]:
    """Return path → text and tree of what can be read, and the paths of what cannot."""
    trees: dict[str, tuple[str, ast.Module]] = {}
    unread: list[str] = []
    for source in sources[:200]:
        if source.path.endswith((".sh", ".bash", ".md", ".txt", ".json")):
            continue
        path = source.path
        while path in trees:
            path += "'"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if len(source.text) > LONGEST_TEXT:
                    raise ValueError
                trees[path] = source.text, ast.parse(source.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            unread.append(source.path)
    return trees, unread


def unread_program(path: str) -> Finding:
    """Say that a program cannot be read."""
    return Finding(
        kind="unread_code",
        severity="hint",
        sentence="A program cannot be read, so nothing is known of what it does.",
        place=path,
    )


def report_texts(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the reports of a run."""
    found: dict[str, str] = {}
    for name, path in sorted(files.items()):
        if name.rpartition("/")[2] in _REPORTS and len(found) < 8:
            try:
                with path.open("rb") as file:
                    found[name] = file.read(LONGEST_TEXT).decode("utf-8", "replace")
            except OSError:
                continue
    return found


def entries(executed: Mapping[str, tuple[str, ast.Module]]) -> list[str]:
    """Return where programs begin: in what no other program imports."""
    imported: set[str] = set()
    for path, (_, tree) in executed.items():
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
            found = {module_of(name, executed) for name in names if name}
            imported |= {name for name in found if name and name != path}
    return [path for path in executed if path not in imported] or list(executed)


def options_of(
    actions: Iterable[Action], executed: Mapping[str, tuple[str, ast.Module]]
) -> frozenset[str]:
    """Return the options that commands were given, by the agent or by a program of its own."""
    found: set[str] = set()
    for action in actions:
        if isinstance(action, Command):
            found.update(_OPTION.findall(action.text[:20_000]))
    for _, tree in executed.values() if found else ():
        for node in ast.walk(tree):
            if isinstance(node, ast.List | ast.Call) and not _declares(node):
                parts = node.elts if isinstance(node, ast.List) else node.args
                for part in parts:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        found.update(_OPTION.findall(part.value[:200]))
    return frozenset(name.replace("-", "_") for name in found)


def _declares(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (
        not isinstance(node.func, ast.Attribute) or node.func.attr not in ("append", "extend")
    )
