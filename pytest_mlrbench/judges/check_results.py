"""Checks of the checklist judge that look at results: records, claims, tables."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain, islice
from typing import Any

from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.judges.check_files import CLAIMS, MAX_ITEMS, Submission
from pytest_mlrbench.judges.check_records import as_number
from pytest_mlrbench.judges.checks import CheckOutcome, Registry, example, share

CHECKS = Registry()


# record


@CHECKS.add
def expected_files(work: Submission) -> CheckOutcome:
    """The files that belong beside the document are there."""
    expected = work.stage.expected
    absent = [name for name in expected if not work.text(name).strip()]
    there = len(expected) - len(absent)
    return example(share(there, len(expected), 1, "files beside the document"), "without", absent)


@CHECKS.add
def log_agrees(work: Submission) -> CheckOutcome:
    """The log shows numbers that the data files or the tables hold."""
    printed = texts.printed_numbers(work.text("results/log.txt"))
    logged = {number for number in printed if number.decimals >= 2}
    known = texts.Known(number.value for number in logged)
    shared = {number for number in logged if number in work.known}
    shared |= {number for number in work.table_numbers if number in known}
    return CheckOutcome(
        len(shared) >= 3, f"{len(shared)} of at least 3 numbers of results/log.txt are results"
    )


@CHECKS.add
def data_kept(work: Submission) -> CheckOutcome:
    """Results exist in a form programs can read."""
    detail = f"{len(work.known):,} numbers in {len(work.data_files)} data files"
    outcome = CheckOutcome(len(work.known) >= 3, f"{detail} that a program names")
    return example(outcome, "none names", work.typed_files)


@CHECKS.add
def code_kept(work: Submission) -> CheckOutcome:
    """The program is there."""
    return CheckOutcome(bool(work.programs), f"{len(work.programs)} program files")


@CHECKS.add
def seeds_recorded(work: Submission) -> CheckOutcome:
    """Data files tell the seeds apart."""
    most = max((_most_seeds(work.document(path)) for path in work.data_files), default=0)
    return CheckOutcome(most >= 3, f"results of {most} seeds, folds or runs in one data file")


_SEED = re.compile(r"seed|fold|repeat|trial|(?:^|[ _])runs?(?:$|[ _])", re.IGNORECASE)


def _most_seeds(document: Any) -> int:
    """Return how many runs *document* keeps apart: under a key, or over rows, that say seed."""
    most, values, pending = 0, set(), [document]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            pending += value.values()
            named = {str(key)[:100]: inner for key, inner in value.items()}
            most = max(most, sum(bool(re.match(r"seed[ _=-]?\d", key)) for key in named))
            for inner in (inner for key, inner in named.items() if _SEED.search(key)):
                if isinstance(inner, list | dict):
                    most = max(most, len(inner))
                elif as_number(inner) is not None:
                    values.add(inner)
    return max(most, len(values))


# claims


@CHECKS.add
def claims_resolve(work: Submission) -> CheckOutcome:
    """At least three claims are listed, and every source leads to a number."""
    lost = [claim.source for claim in work.claims if claim.recorded is None]
    found, listed = len(work.claims) - len(lost), work.claims_listed
    outcome = share(found, listed, 1, f"claims in {CLAIMS} have a source that leads to a number")
    return example(outcome._replace(passed=outcome.passed and listed >= 3), "not", lost)


@CHECKS.add
def claims_hold(work: Submission) -> CheckOutcome:
    """Every value is its source's."""
    wrong = [claim.text for claim in work.claims if not claim.holds]
    count = len(work.claims)
    outcome = share(count - len(wrong), count, 1, "claimed values are their source's")
    return example(outcome, "not", wrong)


@CHECKS.add
def claims_printed(work: Submission) -> CheckOutcome:
    """What is claimed is what the document prints."""
    held = [claim.printed for claim in work.claims if claim.holds]
    numbers = texts.printed_numbers(work.own, every=True)
    shares = [number.value / 100 for number in numbers if number.percent]
    printed = texts.Known([*shares, *(number.value for number in numbers)])
    shown = sum(number in printed for number in held)
    return share(shown, len(held), 0.8, "claimed values that hold stand in the document")


@CHECKS.add
def claims_cover(work: Submission) -> CheckOutcome:
    """Half of what the tables print is claimed."""
    claimed = texts.Known(claim.printed.value for claim in work.claims if claim.holds)
    covered = sum(number in claimed for number in work.table_numbers)
    total = len(work.table_numbers)
    return share(covered, total, 0.5, "numbers of the tables are claims that hold")


# numbers


@CHECKS.add
def results_table(work: Submission) -> CheckOutcome:
    """A table prints results."""
    most = max((len(table.numbers) for table in work.backed_tables), default=0)
    return CheckOutcome(most >= 4, f"{most} numbers in the largest table that is recorded")


def _recorded(work: Submission, least: float) -> CheckOutcome:
    found = sum(work.recorded_in_tables)
    return share(found, len(work.table_numbers), least, "numbers of the tables are recorded")


CHECKS["tables_half_recorded"] = partial(_recorded, least=0.5)
CHECKS["tables_recorded"] = partial(_recorded, least=0.9)


@CHECKS.add
def prose_agrees(work: Submission) -> CheckOutcome:
    """The prose cites recorded numbers."""
    prose = [line for line in work.own.splitlines() if "|" not in line and line[:1] != "#"]
    alone, pairs = texts.spreads("\n".join(prose))
    found, total = work.recorded(alone, pairs), len(alone) + 2 * len(pairs)
    return share(found, total, 0.5, "numbers of the prose are recorded")


# baseline, seeds

_UNBACKED = CheckOutcome(False, "no table whose numbers are recorded")


@CHECKS.add
def variants_compared(work: Submission) -> CheckOutcome:
    """At least three variants stand side by side."""
    most = max((len(table.rows) for table in work.backed_tables), default=0)
    return CheckOutcome(most >= 3, f"{most} rows in the largest table whose numbers are recorded")


def _labelled(work: Submission, name: str, pattern: str) -> CheckOutcome:
    """Look in the backed tables for a *name*: a label of that kind, or told to be one."""
    if not work.backed_tables:
        return _UNBACKED
    told = " ".join(s.lower() for s in work.sentences if name in s.lower() and "|" not in s)
    labels = chain.from_iterable(table.labels for table in work.backed_tables)
    for label in islice(labels, MAX_ITEMS):
        words = " ".join(label.lower().replace("_", " ").split())[:200]
        if re.search(pattern, words) or (len(words) > 2 and words in told[:20_000]):
            return CheckOutcome(True, f"a table compares with {label[:100]!r}")
    return CheckOutcome(False, f"no row or column that is called or described as {name}")


@CHECKS.add
def baseline_compared(work: Submission) -> CheckOutcome:
    """A table compares with a baseline."""
    return _labelled(
        work,
        "baseline",
        r"\b(?:base ?lines?|base|random|majority|chance|vanilla|standard|default|naive|dummy"
        r"|uniform|constant|static|erm)\b",
    )


@CHECKS.add
def ablation_compared(work: Submission) -> CheckOutcome:
    """A table shows an ablation."""
    if any("ablat" in table.context.lower() for table in work.backed_tables):
        return CheckOutcome(True, "a table is headed as ablation")
    return _labelled(
        work,
        "ablation",
        r"\b(?:w/o|without|no|minus|only|ablat\w*|removed)\b|^[-−–+] ?\w",  # noqa: RUF001
    )


@CHECKS.add
def spread_given(work: Submission) -> CheckOutcome:
    """A table gives uncertainty."""
    if not work.backed_tables:
        return _UNBACKED
    spread = r"(?:±|\+/-|\\pm)\s*\d|\b(?:std|s\.?d\.?|sem|stderr|deviation|ci|interval|variance)\b"
    for table in work.backed_tables:
        cells = " ".join([*table.header, *chain.from_iterable(table.rows)])
        if found := re.search(spread, cells.replace("_", " "), re.IGNORECASE):
            return CheckOutcome(True, f"{found[0]!r} in a table")
    return CheckOutcome(False, "no spread in a table whose numbers are recorded")
