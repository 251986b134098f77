"""From the judge specs the user wrote to the panel's judges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.base import Judge

if TYPE_CHECKING:
    from pytest_mlrbench.run.live import Live

FORMS = "anthropic:MODEL, openai:MODEL, google:MODEL, checklist, published, replay:DIR, fixture"
#: What the specs of live judges begin with: the providers.
_LIVE = ("anthropic", "openai", "google")
#: What may stand before the colon of a spec, behind which there may be a ``=`` too.
_WITH_COLON = (*_LIVE, "replay")


def make_judges(
    specs: Sequence[str],
    base: Path,
    stages: Sequence[str],
    rubrics: Path | None = None,
    live: Live | None = None,
) -> list[Judge]:
    """Return the judges of *specs*, each ``[NAME=]SPEC``; one spec may stand for several.

    :param base: the folder that relative paths in a spec are relative to.
    :param rubrics: a folder whose rubrics replace the shipped ones of the same name.
    :param live: gives the models of those judges that ask one.
    :raises InputError: a malformed spec, two judges with one id, or judges of different rubrics.
    """
    judges: list[Judge] = []
    for text in specs:
        name, spec = _split(text)
        if spec.partition(":")[0] in _LIVE and live:
            judges.append(_live(spec, name, stages, rubrics, live))
        else:
            judges += _make(spec, name, base, stages, rubrics)
    ids = [judge.id for judge in judges]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise InputError(
            f"two judges have the id {twice[0]!r}: give one of them a name, as in"
            f" --mlr-judge=other={next(j.spec for j in judges if j.id == twice[0])}."
        )
    for stage in stages:
        if len({judge.rubric(stage).digest for judge in judges}) > 1:
            using = ", ".join(f"{judge.id} uses {judge.rubric(stage).name}" for judge in judges)
            raise InputError(
                f"judges of different rubrics cannot form a panel, and in {stage} {using}:"
                " run them apart."
            )
    return judges


def _split(text: str) -> tuple[str, str]:
    """Return name and spec; the name is empty where none is given.

    :raises InputError: what is given as a name is none.
    """
    name, equals, spec = text.partition("=")
    kind, colon, _ = name.partition(":")
    if not equals or (colon and kind in _WITH_COLON):
        return "", text
    if not re.fullmatch(r"[a-z0-9_-]+", name):
        raise InputError(
            f"judge {text!r}: the name must be small letters, digits, '_' or '-', not {name!r}."
        )
    return name, spec


def _live(spec: str, name: str, stages: Sequence[str], rubrics: Path | None, live: Live) -> Judge:
    from pytest_mlrbench.judges.llm import LLMJudge

    config = live.model(spec, images=live.shows_images)
    slug = re.sub(r"[^a-z0-9_]+", "-", spec.lower()).strip("-")
    return LLMJudge(
        name or slug,
        spec,
        config,
        live.calls,
        rubrics,
        hallucination=live.options.hallucination,
        evidence=live.options.evidence,
    )


def _make(
    spec: str, name: str, base: Path, stages: Sequence[str], rubrics: Path | None
) -> list[Judge]:
    # Each kind is imported when it is used: every session pays for what is imported here.
    if spec == "checklist":
        from pytest_mlrbench.judges.offline import ChecklistJudge

        return [ChecklistJudge(name or "checklist", rubrics)]
    if spec == "published":
        from pytest_mlrbench.judges.replay import published_judges

        return published_judges(name, rubrics)
    if spec.startswith("replay:") and spec.removeprefix("replay:").strip():
        from pytest_mlrbench.judges.replay import replayed_judges

        return replayed_judges(spec, name, base, stages, rubrics)
    if spec == "fixture":
        raise InputError(
            "--mlr-judge=fixture goes with no other judge and no name: the fixture gives them all."
        )
    raise InputError(f"there is no judge {spec!r}: a judge is one of {FORMS}.")
