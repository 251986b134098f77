"""What the repetitions of a declared command come to: findings, and a level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_mlrbench.evidence.base import Evidence, Finding, Replay
from pytest_mlrbench.evidence.replays.trial import Trial, is_well
from pytest_mlrbench.evidence.weighing import speaks_for

#: Where the declaration stands.
_PLACE = "results/claims.json#/replay"
_QUOTED = 3


def verdict(trial: Trial) -> tuple[Replay, list[Finding]]:
    """Return what the repetitions come to."""
    replay = Replay(
        because=_because(trial),
        same=trial.same,
        moved=trial.moved,
        changed=trial.changed,
        numbers=dict(trial.recorded),
        runs=tuple(trial.runs),
        left=tuple(trial.left),
    )
    return replay, list(_findings(trial))


def undeclared(why: str) -> Finding:
    """Return what is said of a run of which nothing could be run again."""
    return _hint("replay_not_declared", f"It was not run again, as {why}.", None)


def weigh_again(before: Evidence, replay: Replay, found: Sequence[Finding]) -> Evidence:
    """Return the evidence with what came of running the case again."""
    order = {"proof": 0, "strong": 1, "hint": 2}
    findings = sorted((*before.findings, *found), key=lambda one: order[one.severity])
    against = speaks_for("fabricated", found)
    level, because = before.level, f"{before.because}; {replay.because}"
    if against:
        level, because = "claimed", f"found: {against[0].kind}"
    elif level == "traced" and replay.same and replay.moved and replay.changed:
        level = "replayed"
    return before.model_copy(
        update={
            "level": level,
            "because": because,
            "fabricated": True if against else before.fabricated,
            "findings": tuple(findings),
            "replay": replay,
        }
    )


def _because(trial: Trial) -> str:
    """Return why there is no more to say, as the end of a sentence about the run."""
    if trial.same is None:
        return "run again, it has no number that could be compared"
    if not trial.same:
        why = f"it fails: {trial.complaint}" if trial.complaint else "it gives other numbers"
        return f"run again with the same seed, {why}"
    if not trial.moved:
        return "another seed does not move its numbers as it is declared to"
    if trial.changed:
        return "run again, its numbers come out, move with the seed and change with the input"
    if not trial.tried:
        return "run again, it reads nothing that could be made wrong or withheld"
    if not trial.stable:
        return "run again, no number comes out to its last digit, and any change may be chance"
    if trial.changed is None and trial.is_like_chance:
        return "with wrong inputs, its numbers change hardly more than they do with another seed"
    if trial.changed is None:
        return f"with its inputs made wrong, it fails ({trial.tried[-1].ended})"
    return "its numbers do not all change with its inputs"


def _findings(trial: Trial) -> Iterator[Finding]:
    line = " ".join(trial.declared.words(trial.declared.seed))[:200]
    if trial.same is False:
        yield Finding(
            kind="does_not_repeat",
            severity="strong",
            sentence="The declared command was run again with the same seed, and "
            + (f"failed: {trial.complaint}" if trial.complaint else "gave other numbers."),
            place=_PLACE,
            quote=_quoted(trial, "seed") or line,
        )
        return
    if trial.moved is False and not trial.strays:
        yield _hint("seed_moves_nothing", "Another seed gives exactly the same numbers.", line)
    if trial.strays:
        some = ", ".join(point.address for point in trial.strays[:_QUOTED])
        sentence = (
            f"Another seed moves {len(trial.strays)} numbers further than is declared: {some}."
        )
        yield _hint("beyond_spread", sentence, _quoted(trial, "another"))
    if trial.is_ignored:
        yield _ignoring(trial)
    elif trial.changed and trial.changed_without_labels:
        sentence = "Its numbers stay exactly as they are when the labels are shuffled."
        yield _hint("labels_do_not_matter", sentence, _quoted(trial, "labels"))
    elif (labels := trial.run("labels")) and not is_well(labels):
        sentence = f"Where nothing but the order of labels is another, it ends with {labels.ended}."
        yield _hint("fails_on_other_labels", sentence, line)
    elif trial.changed is False:
        sentence = "Most numbers that move with the seed do not change with the input."
        yield _hint("some_ignore_input", sentence, line)
    elif trial.changed is None and trial.is_like_chance:
        sentence = "With wrong inputs, numbers change hardly more than they do with another seed."
        yield _hint("changes_like_chance", sentence, line)


def _ignoring(trial: Trial) -> Finding:
    names = dict.fromkeys(name for run in trial.tried for name in run.inputs)
    shown = ", ".join(list(names)[:_QUOTED])
    why = ""
    if trial.is_made_up:
        why = " Its report says that data were made up or simulated."
    elif trial.left:
        why = f" It also reads {trial.left[0]}, which was left as it is."
    elif not trial.is_covered:
        why = " They are not most of the numbers that are reported."
    elif not (trial.has_chance or trial.has_examples):
        why = " They may be numbers that do not depend on it."
    return Finding(
        kind="ignores_input",
        severity="hint" if why else "proof",
        means=None if why else "fabricated",
        sentence=f"The declared command gives exactly the same {len(trial.stable)} numbers when its"
        f" input is made wrong ({shown}).{why}",
        place=_PLACE,
        quote=_quoted(trial, "input"),
    )


def _quoted(trial: Trial, kind: str) -> str | None:
    """The first numbers, as reported and as they came out."""
    run = trial.run(kind)
    if run is None:
        return None
    pairs = [(point.address, point.value, run.numbers.get(point.address)) for point in trial.points]
    shown = sorted(pairs, key=lambda it: it[1] == it[2])[:_QUOTED]
    return ", ".join(f"{address}: {was:.6g} → {_shown(now)}" for address, was, now in shown) or None


def _shown(number: float | None) -> str:
    return "nothing" if number is None else f"{number:.6g}"


def _hint(kind: str, sentence: str, quote: str | None) -> Finding:
    return Finding(kind=kind, severity="hint", sentence=sentence, place=_PLACE, quote=quote)
