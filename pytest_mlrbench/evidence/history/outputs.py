"""Which files a program names, and whether to read or to write them, from its text."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from pytest_mlrbench.evidence.history.parsed import nodes

#: Characters of a program that are read; its patterns that are looked for.
_LONGEST, _PATTERNS = 1_000_000, 500

_NAME = re.compile(r"[\w.*@%+=-]{0,120}\.[A-Za-z]\w{0,8}")
_WORD = re.compile(r"[\w.*/-]{1,200}")
_QUOTED = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"")

#: Calls whose arguments, or whose object, are files that they read.
_READERS = {
    "read_csv",
    "read_json",
    "read_text",
    "read_bytes",
    "load",
    "loads",
    "loadtxt",
    "exists",
}
_READERS |= {"isfile", "is_file", "isdir", "imread", "genfromtxt", "getsize", "stat", "read_excel"}
_READERS |= {"read_parquet", "read_table", "load_dataset", "remove", "unlink", "rmtree"}
#: Those that only say or compare a name.
_SAYERS = {"print", "info", "debug", "warning", "error", "exception", "critical", "endswith"}
_SAYERS |= {"startswith"}
_WRITERS = {"write_text", "write_bytes", "to_csv", "to_json", "to_excel", "to_parquet", "savefig"}
_WRITERS |= {"savetxt", "save", "savez", "dump", "FileHandler", "copy", "copy2", "copyfile", "move"}
_WRITERS |= {"copytree", "rename", "replace", "imwrite", "write_image", "to_markdown", "to_html"}


@dataclass(frozen=True)
class Names:
    """File names, without their folders, and with ``*`` where a program fills something in.

    :param written: those that it writes, or that nothing says it only reads.
    :param read: the others.
    :param words: its short texts, and the parts of its paths, any of which may be a folder.
    """

    written: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()

    def writes(self, name: str) -> bool:
        """Tell whether a file of this name may be one that the program writes."""
        if name in self.written or self._telling(self.written).match(name):
            return True
        # ``f"{name}.png"`` says little, but more where the name stands elsewhere.
        return name.rpartition(".")[0] in self.words and any(
            fnmatchcase(name, pattern) for pattern in self.written if "*" in pattern
        )

    def mentions(self, name: str) -> bool:
        """Tell whether the program names such a file at all."""
        every = self.written | self.read
        return name in every or self._telling(every).match(name) is not None

    @staticmethod
    @lru_cache(maxsize=512)
    def _telling(patterns: frozenset[str]) -> re.Pattern[str]:
        """Return what fits the patterns, without those that say hardly anything."""
        telling = [
            translate(pattern)
            for pattern in sorted(patterns)
            if "*" in pattern and len(pattern.rpartition(".")[0].replace("*", "")) >= 3
        ]
        return re.compile("|".join(telling[:_PATTERNS]) or r"(?!)")


@lru_cache(maxsize=512)
def names(text: str) -> Names:
    """Return the files that a program in Python, or in a shell's language, names."""
    if (parsed := nodes(text)) is None:
        return _roughly(text[:_LONGEST])
    visitor = _Visitor()
    visitor.learn(parsed[1])
    try:
        visitor.visit(parsed[0])
    except RecursionError:
        return _roughly(text[:_LONGEST])
    return Names(
        frozenset(visitor.used["write"] | (visitor.used["plain"] - visitor.used["read"])),
        frozenset(visitor.used["read"] - visitor.used["write"]),
        frozenset(visitor.words),
    )


def _roughly(text: str) -> Names:
    quoted = {one or two for one, two in _QUOTED.findall(text)} | set(text.split())
    last = {word.rpartition("/")[2] for word in quoted if len(word) <= 200}
    words = {part for word in quoted if len(word) <= 200 for part in word.split("/")}
    return Names(frozenset(filter(_NAME.fullmatch, last)), frozenset(), frozenset(words))


class _Visitor(ast.NodeVisitor):
    """Walks a program with the use that the expression it is in makes of a file name."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = defaultdict(set)
        self.words: set[str] = set()
        self._use = "plain"
        #: Variable or attribute → file names that it may hold.
        self._held: dict[str, set[str]] = defaultdict(set)

    def learn(self, found: Sequence[ast.AST]) -> None:
        """Note which variables hold file names."""
        assigned = [node for node in found if isinstance(node, ast.Assign | ast.AnnAssign)]
        for _ in range(2):
            for node in assigned:
                if node.value is None:
                    continue
                names = set(self._in(node.value))
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if names and (key := _key(target)):
                        self._held[key] |= names

    def _in(self, value: ast.expr) -> Iterator[str]:
        """Yield the file names that stand in an expression, or in what its variables hold."""
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and _called(node) in _READERS:
                return
        for node in ast.walk(value):
            if (text := _constant(node)) is not None and (name := _file_name(text)):
                yield name
            elif isinstance(node, ast.Name | ast.Attribute):
                yield from self._held.get(_key(node) or "", ())

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out texts that only describe."""
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """See what a call does with the names in it."""
        before = self._use
        called = _called(node)
        if called == "open":
            self._use = "write" if _is_for_writing(node) else "read"
        elif called in _SAYERS:
            self._use = "said"
        elif called in _WRITERS and before != "said":
            self._use = "write"
        elif called in _READERS and before == "plain":
            self._use = "read"
        self.generic_visit(node)
        self._use = before

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note a name."""
        self._note(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Note a name that is put together."""
        self._note(node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Name(self, node: ast.Name) -> None:
        """Note the names that a variable may hold."""
        self._note_held(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note the names that an attribute may hold."""
        self._note_held(node)
        self.generic_visit(node)

    def _note_held(self, node: ast.expr) -> None:
        if isinstance(getattr(node, "ctx", None), ast.Load) and self._use != "plain":
            self.used[self._use] |= self._held.get(_key(node) or "", set())

    def _note(self, node: ast.AST) -> None:
        text = _constant(node)
        if text is None:
            return
        if name := _file_name(text):
            self.used[self._use].add(name)
        if self._use != "said" and _WORD.fullmatch(text):
            self.words |= set(text.split("/"))


def _key(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _called(node: ast.Call) -> str | None:
    return _key(node.func)


def _constant(node: ast.AST) -> str | None:
    """Return a text, with ``*`` for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and len(node.value) <= 300 else None
    if isinstance(node, ast.JoinedStr):
        parts = [
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "*"
            for part in node.values
        ]
        return "".join(parts)[:300]
    return None


def _file_name(text: str) -> str | None:
    name = re.sub(r"%\w|\{[^{}]{0,80}\}", "*", text.rpartition("/")[2])
    return name if _NAME.fullmatch(name) else None


def _is_for_writing(node: ast.Call) -> bool:
    # ``open(path, mode)``, but ``path.open(mode)``.
    is_method = isinstance(node.func, ast.Attribute) and _key(node.func.value) not in _OPENERS
    place = 0 if is_method else 1
    given = list(node.args[place : place + 1])
    given += [word.value for word in node.keywords if word.arg == "mode"]
    modes = [arg.value for arg in given if isinstance(arg, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)


_OPENERS = ("io", "codecs", "gzip", "os", "bz2", "lzma")
