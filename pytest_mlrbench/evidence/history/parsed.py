"""Programs as trees, parsed once."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

#: Characters of a program that are parsed.
_LONGEST = 1_000_000


@lru_cache(maxsize=256)
def nodes(text: str) -> tuple[ast.Module, tuple[ast.AST, ...]] | None:
    """Return the tree of a program in Python, and all its nodes; null where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the agent's escapes and comparisons
            tree = ast.parse(text[:_LONGEST])
        return tree, tuple(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
