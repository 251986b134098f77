"""Counts how often honest programs are said to make their results up: python honest_code.py FOLDER…

Every module below the folders (installed packages with their tests and examples, say) is looked at
as if a run had executed it and called each of its functions and methods. None of them makes up
results of a run, so each alarm is a false one.
"""

from __future__ import annotations

import ast
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

from pytest_mlrbench.evidence.base import Source
from pytest_mlrbench.evidence.code import findings as code


def main(folders: list[str]) -> None:
    """Print the alarms, and how many files of which package there were."""
    files: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    slowest = 0.0
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*.py")):
            package = path.relative_to(folder.parent).parts[0]
            text = path.read_text("utf-8", "replace")
            source = Source(path.name, f"{text}\n{calls(text)}", True)
            begin = time.perf_counter()
            found = [f for f in code.findings([source], {}) if f.kind == "made_up_metrics"]
            slowest = max(slowest, time.perf_counter() - begin)
            files[package] += 1
            for finding in found:
                alarms[finding.severity] += 1
                print(finding.severity, path.relative_to(folder.parent), finding.sentence)
    print(f"{sum(files.values())} files: {dict(files)}")
    print(f"strong {alarms['strong']}, hints {alarms['hint']}; slowest file {slowest:.2f} s")


def calls(text: str) -> str:
    """Return lines that call whatever a module defines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except SyntaxError:
        return ""
    lines = []
    for node in body:
        if isinstance(node, ast.FunctionDef):
            lines.append(f"{node.name}()")
        elif isinstance(node, ast.ClassDef):
            methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            lines += [f"{node.name}().{name}()" for name in methods if name != "__init__"]
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
