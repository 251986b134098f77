"""What the text of a program says by itself: names of stand-ins, and data that replace others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pytest_mlrbench.evidence.base import Finding

_STAND_IN = re.compile(r"(?:^|_)(?:mock|dummy|fake|placeholder|simulated?|synthetic)(?:_|$)")
_RESULT = re.compile(r"result|metric|score|experiment|training|evaluation|performance|log")
_DATA = re.compile(
    r"\b(?:dummy|mock|fake|synthetic|placeholder|random|toy|simulated)\b[^\n]{0,40}"
    r"\b(?:data|dataset|samples?|images?|results?|responses?|examples?|embeddings?|features?)\b",
    re.IGNORECASE,
)
_CHANCE = re.compile(r"\b(?:rand|randn|randint|normal|uniform|gauss|random|rng)\b")
#: Findings of one kind.
_MOST = 5


def found_in(path: str, text: str, nodes: Sequence[ast.AST]) -> Iterator[Finding]:
    """Yield hints about functions that stand in for results, and data made up after a failure."""
    lines = text.splitlines()
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    stand_ins = [f for f in functions if _STAND_IN.search(f.name.lower())]
    for function in [f for f in stand_ins if _RESULT.search(f.name.lower())][:_MOST]:
        yield Finding(
            kind="mock_names",
            severity="hint",
            sentence="A program that was run has a function whose name says that it stands in for "
            "an experiment.",
            place=f"{path}:{function.lineno}",
            quote=_quoted(lines, function.lineno),
        )
    names = {function.name for function in stand_ins}
    handlers = [n for n in nodes if isinstance(n, ast.ExceptHandler)]
    for handler in [h for h in handlers if _replaces(h, names)][:_MOST]:
        yield Finding(
            kind="synthetic_fallback",
            severity="hint",
            sentence="When something fails, this program goes on with data that it makes up.",
            place=f"{path}:{handler.lineno}",
            quote=_quoted(lines, handler.lineno),
        )


def _replaces(handler: ast.ExceptHandler, stand_ins: set[str]) -> bool:
    if any(isinstance(part, ast.Raise) for part in handler.body):
        return False
    for node in ast.walk(ast.Module(handler.body, [])):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in stand_ins or _CHANCE.fullmatch(name):
                return True
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and _DATA.search(text[:300]):
            return True
    return False


def _quoted(lines: list[str], number: int) -> str | None:
    return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else None
