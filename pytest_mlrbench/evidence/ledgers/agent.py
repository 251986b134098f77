"""Which of the recorded processes are the agent's own hand.

What such a process writes is *typed*: nothing shows how it came by the content. An editor of a
coding CLI writes in the CLI's own process; what its commands write, they write in processes of
their own. A program that was started as the agent and computes by itself is a command like others.
"""

from __future__ import annotations

from functools import cache

from pytest_mlrbench.evidence.ledgers.programs import LEARNERS, is_code, is_interpreter, is_shell
from pytest_mlrbench.evidence.ledgers.view import ROOT, LedgerView, Process, Program

#: Words of a command line among which the name of a CLI is looked for: ``node --flag …/claude``.
_WORDS = 6


def hands(view: LedgerView) -> frozenset[int]:
    """The keys of the processes in which the agent itself writes."""
    # What the last program is counts: a CLI becomes the shell, and that the command it was given.
    found = {it.key for it in view.processes.values() if it.programs and _is_cli(it.programs[-1])}
    roots = [process for process in view.processes.values() if process.parent is None]
    # Below a hand, what looks like one is its experiment: one that asks models and runs their code.
    found |= {root.key for root in roots if root.key not in found and _acts(view, root)}
    todo = [view.processes[key] for key in found]
    while todo:
        forks = [view.processes[key] for key in todo.pop().children if key in view.processes]
        todo += [fork for fork in forks if not fork.programs and fork.key not in found]
        found |= {fork.key for fork in forks if not fork.programs}
    return frozenset(found)


@cache
def _clis() -> tuple[frozenset[str], tuple[str, ...]]:
    """Names of the programs that are coding CLIs, and parts of the paths of their packages."""
    from pytest_mlrbench.agents.coding import ADAPTERS

    programs = {adapter.program for adapter in ADAPTERS.values()}
    packages = tuple(f"/{adapter.package}/" for adapter in ADAPTERS.values())
    return frozenset(programs), packages


def _is_cli(program: Program) -> bool:
    """Whether it is a coding CLI: by its own name, or as what an interpreter executes."""
    names, packages = _clis()
    words = [program.exe, *program.argv[:1]]
    if is_interpreter(program):
        scripts = [word for word in program.argv[1:_WORDS] if word.startswith("/")]
        words += [word for word in scripts[:1] if not word.startswith(ROOT)]
    return any(
        word.rpartition("/")[2] in names or any(package in word for package in packages)
        for word in words
    )


def _acts(view: LedgerView, root: Process) -> bool:
    """Whether a program is an agent: it has what it wrote executed, or asks and has run."""
    if not root.programs or is_shell(root.programs[-1]):
        return False
    if any(map(LEARNERS.match, root.packages)):  # it computes, whatever else it does
        return False
    below = view.below(root.key)[1:]
    code = {path for path in root.wrote if is_code(path)}
    if any(root.key in read.writers and read.path in code for it in below for read in it.reads):
        return True
    asks = any(ok and not where.startswith("unix:") for where, ok in root.connections)
    return asks and (bool(code) or any(_runs(view, key) for key in root.children))


def _runs(view: LedgerView, key: int) -> bool:
    """Whether a child is a shell that has a program run."""
    if not is_shell(view.program(key)):
        return False
    programs = [program for process in view.below(key) for program in process.programs]
    return any(is_interpreter(it) or it.exe.startswith((ROOT, "/home/")) for it in programs)
