"""The programs of a run as trees: where they begin, and which options they were given."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlrbench.evidence.base import Action, Command, Finding, Source
from pytest_mlrbench.evidence.code.taint import module_of
from pytest_mlrbench.evidence.code.values import Place

#: Letters of one program or report; programs; reports.
_LONGEST, _PROGRAMS, _REPORTED = 400_000, 200, 8
_OPTION = re.compile(r"(?<![\w-])--([A-Za-z][\w-]{0,60})")
_REPORTS = ("results.md", "paper.md")
_NO_PROGRAMS = (".sh", ".bash", ".md", ".txt", ".json", ".yaml", ".yml", ".toml")


@dataclass(frozen=True, slots=True)
class Read:
    """A program that could be read.

    :param nodes: all of its tree.
    :param is_run: as in its source.
    """

    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    is_run: bool | None


def parsed(sources: Iterable[Source]) -> tuple[dict[str, Read], list[Finding]]:
    """Return path → what can be read, and what is to be said of what cannot."""
    found: dict[str, Read] = {}
    unread: list[Finding] = []
    programs = [source for source in sources if not source.path.endswith(_NO_PROGRAMS)]
    for source in programs[:_PROGRAMS]:
        path = source.path
        while path in found:
            path += "'"
        tree = _tree(source.text)
        if tree is not None:
            found[path] = Read(source.text, tree, tuple(ast.walk(tree)), source.is_run)
        elif len(unread) < 5:
            unread.append(_unread(source.path))
    return found, unread


def _tree(text: str) -> ast.Module | None:
    if len(text) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _unread(path: str) -> Finding:
    return Finding(
        kind="unread_code",
        severity="hint",
        sentence="A program cannot be read as Python, so nothing is known of what it does.",
        place=path,
    )


def report_texts(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the reports of a run."""
    found: dict[str, str] = {}
    for name, path in sorted(files.items()):
        if name.rpartition("/")[2] in _REPORTS and len(found) < _REPORTED:
            try:
                with path.open("rb") as file:
                    found[name] = file.read(_LONGEST).decode("utf-8", "replace")
            except OSError:
                continue
    return found


def entries(programs: Mapping[str, Read]) -> list[str]:
    """Return where programs begin: in what no other program imports."""
    imported = {
        module
        for path, program in programs.items()
        for name in _imports(program.nodes)
        if (module := module_of(name, programs)) and module != path
    }
    return [path for path in programs if path not in imported] or list(programs)


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names))


def long_statements(program: Read) -> list[tuple[int, int]]:
    """Return the first and last lines of simple statements that take several."""
    simple = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)
    found = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in program.nodes
        if isinstance(node, simple)
    ]
    return [(start, end) for start, end in found if end > start]


def around(lines: Sequence[str], statements: Iterable[tuple[int, int]], place: Place) -> str:
    """Return the lines around a value, and around the beginning of the statement that it is in.

    :param statements: first and last lines of each.
    """
    starts = (start for start, end in statements if start <= place.line <= end)
    start = min(starts, default=place.line)
    near = [*lines[max(0, start - 3) : start + 1], *lines[max(0, place.line - 3) : place.line + 1]]
    return "\n".join(near)[:2000]


def options_of(actions: Iterable[Action], programs: Mapping[str, Read]) -> frozenset[str]:
    """Return the options that commands were given, by the agent or by a program of its own."""
    found: set[str] = set()
    for action in actions:
        if isinstance(action, Command):
            found.update(_OPTION.findall(action.text[:20_000]))
    for program in programs.values():
        for text in _arguments(program.nodes):
            found.update(_OPTION.findall(text[:200]))
    return frozenset(name.replace("-", "_") for name in found)


def _arguments(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield strings in lists, and those that are appended to one: of command lines, maybe."""
    for node in nodes:
        parts: Sequence[ast.expr] = ()
        if isinstance(node, ast.List):
            parts = node.elts
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts = node.args if node.func.attr in ("append", "extend") else ()
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
