"""Repeats, spreads and tests that are reported, although no program makes any of the kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_mlrbench.evidence.base import Source
from pytest_mlrbench.evidence.reports.outline import outline

#: Characters of a document, of programs or of what was printed, and of a line that are looked at.
_LONGEST, _RUN, _LINE = 500_000, 16_000_000, 4_000

_MANY = r"(?:two|three|four|five|six|eight|ten|twenty|multiple|several|[2-9]|[1-9]\d)"
_RESAMPLED = ("kfold", "k_fold", "k-fold", "cross_val", "bootstrap", "permutation", "resampl")
#: What is reported → what is in a program that does it, or is printed by one, in small letters.
_RULES = (
    (
        re.compile(
            rf"\b{_MANY}\s+(?:(?:different|distinct|independent|random|separate|training)\s+){{0,2}}"
            r"(?:seeds|runs|trials|repetitions|repeats|replicates|initiali[sz]ations)\b"
            rf"|\brepeated\s+{_MANY}\s+times\b"
            r"|\b(?:averaged|means?|std|deviations?)\s+(?:over|across)\s+(?:\w+\s+)?"
            r"(?:seeds|runs|trials)\b",
            re.IGNORECASE,
        ),
        (
            *("seeds", "seed in", "run in ", "rep in ", "trial in", "round in", "seed +", "seed+"),
            *("_runs", "_trials", "_repe", "_reps", "_rounds", "_experiments", "repeats", "$(seq"),
            *_RESAMPLED,
        ),
    ),
    (
        re.compile(
            r"\b(?:(?:paired|student's|welch's)\s)?\$?t\$?-tests?\b"
            r"|\b(?:wilcoxon|mann-whitney|mcnemar|anova|bonferroni)\b"
            r"|\bp\s?(?:\\?[<=]|\\lt)\s?0?\.\d|\bstatistical(?:ly)? significan\w+",
            re.IGNORECASE,
        ),
        (
            *("t-test", "t_test", "ttest", "wilcoxon", "mannwhitney", "mann-whitney", "mcnemar"),
            *("anova", "f_oneway", "kruskal", "p-val", "p_val", "pval", "p val", "p < 0.", "p<0."),
            *(
                "(p=0.",
                " p=0.",
                "p = 0.",
                "scipy.stats",
                "scipy import stats",
                "statsmodels",
                "pingouin",
                *_RESAMPLED,
            ),
        ),
    ),
    (
        re.compile(
            r"\d\s{0,2}(?:±|\\pm|\+/-)\s{0,2}\d|\berror bars?\b|\bconfidence intervals?\b"
            r"|\bstandard (?:deviations?|errors?) (?:over|across|of the)\b",
            re.IGNORECASE,
        ),
        (
            *(
                "std",
                "stderr",
                "standard dev",
                "standard err",
                "sem(",
                "±",
                "+/-",
                "variance",
                "var(",
            ),
            *(
                "sqrt",
                "**0.5",
                "** 0.5",
                "percentile",
                "quantile",
                "confidence",
                "yerr",
                "errorbar",
            ),
            *("margin", "bar_err", *_RESAMPLED),
        ),
    ),
)
#: Streams have no spread, and "set random seeds" sets one.
_MISLEADING = re.compile(r"stdout|stdin|\.stderr|stdlib|(?:set|random|all|fix) seeds")
#: What is not said to have been done.
_NOT_DONE = re.compile(
    r"\b(?:no|not|without|future|would|should|could|lack\w*|need\w*|plan\w*|single|only one|limited"
    r"|more seeds|additional)\b",
    re.IGNORECASE,
)
_SEED = re.compile(r"seed[s_\-= :\"']{1,4}(\d{1,10})")


class Told(NamedTuple):
    """What is reported, and where."""

    document: str
    line: int
    quote: str


def unrepeated(
    documents: Sequence[tuple[str, str]], run_texts: Sequence[str], sources: Sequence[Source]
) -> Iterator[Told]:
    """Yield what the documents (name, text) report of the kind, once each.

    Without programs nothing can be told. Any sign of it in a program or in what was printed is
    enough, for a spread over examples is reported as one over runs is.
    """
    ran = _joined(source.text for source in sources if source.is_run is not False)
    printed = _joined(run_texts)
    if not ran or len({*_SEED.findall(ran), *_SEED.findall(printed)}) > 1:
        return
    left = [claim for claim, signs in _RULES if not any(it in ran or it in printed for it in signs)]
    for name, text in documents:
        for line in outline(text[:_LONGEST]) if left else ():
            words = line.text[:_LINE]
            for claim in tuple(left) if line.kind != "others" else ():
                if (found := claim.search(words)) and not _NOT_DONE.search(words):
                    left.remove(claim)
                    yield Told(name, line.number, found[0])


def _joined(texts: Iterable[str]) -> str:
    left, parts = _RUN, []
    for text in texts:
        parts.append(text[:left])
        left -= len(text)
        if left <= 0:
            break
    return _MISLEADING.sub("", "\n".join(parts).lower())
