"""Why a run has collected no case: one sentence, with the remedy that fits."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

import pytest

from pytest_mlrbench.resources import shipped
from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.suites.stages import STAGES

#: pytest's name of an option → the option, of those that leave out tests, or files of tests.
_LEAVE_OUT_TESTS = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "lf": "--lf",
    "stepwise": "--sw",
}
_LEAVE_OUT_FILES = {"ignore": "--ignore", "ignore_glob": "--ignore-glob", "lf": "--lf"}


def why_nothing(config: pytest.Config, plan: Plan, met: Collection[str], fault: str = "") -> str:
    """Return why no case of *plan* was collected.

    :param met: the stages of the tests of ours that were met, also of those not asked for.
    :param fault: what pytest itself says of the paths it was given, if anything.
    """
    if fault and not fault.startswith("not found: "):
        return fault  # of a path that does not exist
    words = [str(word) for word in config.args]
    hint = _of_other_stages(plan.stages, met)
    if fault:
        hint = hint or (_mistyped(words, plan) if met else "")
    else:
        hint = hint or _left_out(config, words, plan.stages, met)
    if not hint:
        return fault
    number = len(plan.cases)
    return (
        f"--mlr-stage={','.join(plan.stages)} has collected none of its {number} case"
        f"{'s' * (number != 1)} from {', '.join(map(_shown, words)) or 'no path'}. {hint}"
    )


def _shown(word: str) -> str:
    """A path as the user knows it: that of the shipped tests is ours."""
    ours = str(shipped("benchmarks"))
    return "the shipped benchmarks" if word == ours else word.removeprefix(f"{ours}/")


def _files(stages: Sequence[str]) -> str:
    return " ".join(f"test_mlr_{stage}.py" for stage in stages)


def _of_other_stages(stages: Sequence[str], met: Collection[str]) -> str:
    others = [stage for stage in STAGES if stage in met]
    if not others or set(others) & set(stages):
        return ""
    return (
        f"The tests there are for --mlr-stage={','.join(others)}: write that, or name"
        f" {_files(stages)}."
    )


def _mistyped(words: Sequence[str], plan: Plan) -> str:
    """The first id in brackets that is none of a case."""
    known = {case.test_id: case for case in plan.cases}
    ids = [word.partition("[")[2].rstrip("]") for word in words if "::" in word and "[" in word]
    for name in ids:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f": did you mean {close[0]!r}?" if close else "."
            return f"There is no case {name!r}{meant}"
    return ""


def _left_out(
    config: pytest.Config, words: Sequence[str], stages: Sequence[str], met: Collection[str]
) -> str:
    """Only what was said can have left them out, or else code of the user's."""
    options = _LEAVE_OUT_TESTS if met else _LEAVE_OUT_FILES
    used = [option for name, option in options.items() if getattr(config.option, name, None)]
    first = ", ".join(used[:-1])
    hint = f"Check {f'{first} and ' if first else ''}{used[-1]}." if used else ""
    ours = str(shipped("benchmarks"))
    if not met and words and not any(word.startswith(ours) for word in words):
        none = "These paths, perhaps from addopts, have none of our tests"
        return f"{hint} {none}: add {_files(stages)}.".lstrip()
    return hint or "A hook of a conftest.py or of another plugin has left them out: look there."
