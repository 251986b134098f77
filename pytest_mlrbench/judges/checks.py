"""The checks of the checklist judge: each answers one yes-or-no question about a submission.

A check passes on evidence only: where there is nothing to look at, it fails. Its name is the name
``rubrics/checklist.yaml`` uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.judges.check_files import CLAIMS, MAX_BYTES, MAX_ITEMS, Submission, as_number


class CheckOutcome(NamedTuple):
    """Whether a check passed, and what was seen."""

    passed: bool
    detail: str


Check = Callable[[Submission], CheckOutcome]

#: Name → check.
CHECKS: dict[str, Check] = {}


def _check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def _says(work: Submission, what: str, pattern: str) -> CheckOutcome:
    """Look for a sentence of the agent's own that matches *pattern*."""
    for sentence in work.sentences:
        if found := re.search(pattern, sentence, re.IGNORECASE):
            return CheckOutcome(True, f"a sentence {what}: {found[0]!r}")
    return CheckOutcome(False, f"no sentence {what}")


def _share(part: int, whole: int, least: float, what: str) -> CheckOutcome:
    return CheckOutcome(whole > 0 and part >= least * whole, f"{part} of {whole} {what}")


# files

#: Stage → fewest and most words of its document.
WORDS = {
    "idea": (60, 800),
    "proposal": (300, 8_000),
    "experiment": (120, 8_000),
    "paper": (600, 15_000),
    "end_to_end": (600, 15_000),
}

_UNFINISHED = (
    r"lorem ipsum|\b(?:TODO|TBD|FIXME|XXX+)\b"
    r"|[\[<{](?:insert|your|placeholder|fill|add|describe)\b[^\]>}\n]{0,80}[\]>}]"
    r"|\bto be (?:filled|completed|written|added|determined|announced)\b|\byour (?:text|title) here\b"
)


@_check
def length(work: Submission) -> CheckOutcome:
    """The document is text and has as many words as its stage calls for."""
    data = work.read(work.document_path)
    if len(data) > MAX_BYTES:
        return CheckOutcome(False, f"{work.document_path} is larger than {MAX_BYTES:,} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return CheckOutcome(False, f"byte {error.start} of {work.document_path} is not UTF-8")
    fewest, most = WORDS[work.stage.name]
    count = len(texts.words(work.own))
    return CheckOutcome(fewest <= count <= most, f"{count:,} own words of {fewest:,} to {most:,}")


@_check
def finished(work: Submission) -> CheckOutcome:
    """No placeholder stands in it."""
    if not texts.words(work.own):
        return CheckOutcome(False, "it has no words of its own")
    # Case matters: "todo" and "xxx" occur in honest prose, "TODO" does not.
    found = re.search(_UNFINISHED, work.own) or re.search(r"lorem ipsum", work.own, re.IGNORECASE)
    return CheckOutcome(not found, f"{found[0]!r} stands in it" if found else "no placeholder")


@_check
def varied(work: Submission) -> CheckOutcome:
    """It is not one passage over and over."""
    runs = texts.ngrams(texts.words(work.own), 5)
    return _share(len(set(runs)), len(runs), 0.6, "runs of five words occur for the first time")


# structure


@_check
def title(work: Submission) -> CheckOutcome:
    """A title names the work."""
    count = len(texts.words(work.title))
    return CheckOutcome(2 <= count <= 40, f"title {work.title[:100]!r}")


#: Words under a heading that make it more than a heading.
_FEW = 15


def _sections(work: Submission, least: float) -> CheckOutcome:
    present = [name for name, count in work.expected_sections.items() if count >= _FEW]
    absent = [name for name in work.expected_sections if name not in present]
    wanting = f"; without {', '.join(absent)}" if absent else ""
    outcome = _share(len(present), len(work.expected_sections), least, "expected sections")
    return outcome._replace(detail=outcome.detail + wanting)


@_check
def sections_begun(work: Submission) -> CheckOutcome:
    """Half of the sections are there."""
    return _sections(work, 0.5)


@_check
def sections_complete(work: Submission) -> CheckOutcome:
    """All sections are there."""
    return _sections(work, 1)


# specificity

_COMMON = frozenset(
    [
        "about",
        "above",
        "across",
        "after",
        "among",
        "approach",
        "aspects",
        "based",
        "because",
        "before",
        "being",
        "below",
        "between",
        "could",
        "different",
        "during",
        "example",
        "explore",
        "focus",
        "following",
        "given",
        "great",
        "groups",
        "including",
        "interest",
        "invite",
        "known",
        "large",
        "learning",
        "machine",
        "methods",
        "model",
        "models",
        "other",
        "others",
        "paper",
        "papers",
        "present",
        "research",
        "results",
        "several",
        "should",
        "since",
        "specific",
        "study",
        "submissions",
        "technique",
        "techniques",
        "their",
        "these",
        "thing",
        "things",
        "those",
        "through",
        "topic",
        "topics",
        "toward",
        "towards",
        "under",
        "using",
        "various",
        "what",
        "when",
        "where",
        "which",
        "while",
        "within",
        "without",
        "workshop",
        "would",
    ]
)


@_check
def own_words(work: Submission) -> CheckOutcome:
    """It speaks of the task, and is not a copy of it."""
    counts = Counter(
        word for word in texts.words(work.task) if len(word) > 4 and word not in _COMMON
    )
    terms = sorted(counts, key=lambda word: (-counts[word], word))[:20]
    used = sum(term in set(texts.words(work.own)) for term in terms)
    copied = set(texts.ngrams(texts.words(work.task), 6))
    runs = texts.ngrams(texts.words(work.raw), 6)
    own = sum(run not in copied for run in runs)
    on_task = _share(used, len(terms), 0.2, "terms of the task used")
    original = _share(own, len(runs), 0.7, "runs of six words not the task's")
    return CheckOutcome(on_task.passed and original.passed, f"{on_task.detail}, {original.detail}")


@_check
def details(work: Submission) -> CheckOutcome:
    """It has numbers, formulas or names that the task does not have."""
    pattern = r"\b[A-Z][A-Za-z]{0,20}[A-Z0-9][\w-]{0,20}|\d+(?:\.\d+)?%?|\$[^$\n]{1,200}\$"
    found = set(re.findall(pattern, work.own)) - set(re.findall(pattern, work.task))
    return CheckOutcome(len(found) >= 3, f"{len(found)} of at least 3 details of its own")


# plan and controls

_COMPARISON = (
    r"\b(?:baselines?|compar\w+|versus|vs\.?|outperform\w*|against|state[- ]of[- ]the[- ]art)\b"
)
_ABLATION = r"\bablat\w*|\bwithout (?:the|this|each)\b|\b(?:each|one) component\b|\bw/o\b"


@_check
def data_named(work: Submission) -> CheckOutcome:
    """It names data."""
    return _says(
        work,
        "names data",
        r"\b(?:data ?sets?|data|benchmarks?|corp(?:us|ora)|samples|simulat\w+|environments?)\b",
    )


@_check
def metric_named(work: Submission) -> CheckOutcome:
    """It names a measure."""
    return _says(
        work,
        "names a measure",
        r"\b(?:accurac\w+|f1|au(?:c|roc|prc)|precision|recall|errors?|loss|perplexity|bleu|rouge"
        r"|rewards?|regret|correlation|likelihood|latency|throughput|runtime|memory|r?mse|mae|r2"
        r"|coverage|calibration|ece|fid|pass@\w+|scores?|rates?|metrics?|complexity|robustness)\b",
    )


@_check
def comparison_planned(work: Submission) -> CheckOutcome:
    """It says what the method is compared with."""
    return _says(
        work,
        "says what it is compared with",
        r"\b(?:baselines?|compar\w+|versus|vs\.?|outperform\w*|against|state[- ]of[- ]the[- ]art)\b",
    )


@_check
def evaluation_planned(work: Submission) -> CheckOutcome:
    """It says how the outcome is measured."""
    return _says(
        work,
        "says how it is measured",
        r"\b(?:evaluat\w+|measur\w+|test(?:ed|ing)? (?:on|by|with)|validat\w+|metrics?)\b",
    )


@_check
def outcome_expected(work: Submission) -> CheckOutcome:
    """It says what result is expected."""
    return _says(
        work,
        "says what is expected",
        r"\b(?:expect\w*|hypothes\w+|predict\w*|anticipat\w+|(?:should|will|would) (?:be\b|\w+e\b))",
    )


@_check
def ablation_planned(work: Submission) -> CheckOutcome:
    """An ablation is planned."""
    return _says(
        work,
        "plans an ablation",
        r"\bablat\w*|\bwithout (?:the|this|each)\b|\b(?:each|one) component\b|\bw/o\b",
    )


_NUMERALS = "three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|hundred"
_REPEATED = (
    rf"\b(?:[3-9]|[1-9]\d{{1,3}}|{_NUMERALS})[- ](?:[\w-]{{1,20}} ){{0,3}}"
    r"(?:seeds?|runs|repetitions|repeats|replications|trials|folds?|restarts|splits)\b"
    r"|\bseeds?\b[^\d\n]{0,15}\d+(?:(?:,| and|,? to|-|–|\.\.)\s{0,2}\d+){2}"  # noqa: RUF001
    r"|\bseeds?\b[^\d\n]{0,15}[01] ?(?:to|-|–|\.\.) ?(?:[2-9]|[1-9]\d)\b"  # noqa: RUF001
    r"|\b(?:n_seeds|num_seeds|number of seeds|seeds)\b\W{1,5}(?:[3-9]|\d{2})\b"
)


@_check
def repeats_stated(work: Submission) -> CheckOutcome:
    """At least three seeds, folds or runs."""
    return _says(work, "states three or more seeds, folds or runs", _REPEATED)


@_check
def spread_planned(work: Submission) -> CheckOutcome:
    """Spread or significance is to be reported."""
    return _says(
        work,
        "plans to report spread",
        r"±|\bstandard (?:deviation|error)s?\b|\bstd\b|\bconfidence intervals?\b|\bvariance\b|\bbootstrap"
        r"|\bp-values?\b|\bt-tests?\b|\bwilcoxon\b|\bstatistical(?:ly)? (?:significan\w+|tests?)\b",
    )


# record


@_check
def expected_files(work: Submission) -> CheckOutcome:
    """The files that belong beside the document are there."""
    absent = [name for name in work.stage.expected if not work.text(name).strip()]
    return CheckOutcome(
        bool(work.stage.expected) and not absent,
        f"without {', '.join(absent)}" if absent else f"{len(work.stage.expected)} files",
    )


@_check
def log_agrees(work: Submission) -> CheckOutcome:
    """The log shows numbers that the data files or the tables hold."""
    printed = texts.printed_numbers(work.text("results/log.txt"))
    logged = {number for number in printed if number.decimals >= 2}
    known = texts.Known(number.value for number in logged)
    shared = {number for number in logged if number in work.known}
    shared |= {number for table in work.tables for number in table.numbers if number in known}
    return CheckOutcome(
        len(shared) >= 3, f"{len(shared)} of at least 3 numbers of results/log.txt are results"
    )


@_check
def data_kept(work: Submission) -> CheckOutcome:
    """Results exist in a form programs can read."""
    files = len(work.data_files)
    return CheckOutcome(len(work.known) >= 3, f"{len(work.known):,} numbers in {files} data files")


_CODE = (".py", ".ipynb", ".sh", ".r", ".jl", ".c", ".cc", ".cpp", ".cu", ".rs", ".go", ".java")


@_check
def code_kept(work: Submission) -> CheckOutcome:
    """The program is there."""
    programs = [path for path in work.files if path.lower().endswith(_CODE) and work.read(path)]
    return CheckOutcome(bool(programs), f"{len(programs)} program files")


@_check
def seeds_recorded(work: Submission) -> CheckOutcome:
    """Data files tell the seeds apart."""
    most = max((_most_seeds(work.document(path)) for path in work.data_files), default=0)
    return CheckOutcome(most >= 3, f"results of {most} seeds in one data file")


def _most_seeds(document: Any) -> int:
    """Return how many runs *document* keeps apart: under a key, or over rows, that say seed."""
    most, scalars, pending = 0, set(), [document]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            pending += value.values()
            for key, inner in value.items():
                if re.search(r"seed|fold|repeat|trial|\bruns?\b|_runs?\b", str(key)[:100], re.I):
                    if isinstance(inner, list | dict):
                        most = max(most, len(inner))
                    elif as_number(inner) is not None:
                        scalars.add(inner)
            most = max(most, sum(bool(re.match(r"seed[ _=-]?\d", str(key)[:20])) for key in value))
    return max(most, len(scalars))


# claims


def _claims(work: Submission) -> list[dict[str, Any]]:
    """Return the entries of the claims file that have the three fields."""
    listed = work.document(CLAIMS)
    return [
        entry
        for entry in (listed[:MAX_ITEMS] if isinstance(listed, list) else [])
        if isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
        and isinstance(entry.get("source"), str)
        and not isinstance(entry.get("value"), str)
        and as_number(entry.get("value")) is not None
    ]


@_check
def claims_resolve(work: Submission) -> CheckOutcome:
    """At least three claims are listed, and every source leads to a number."""
    claims = _claims(work)
    lost = [claim["source"] for claim in claims if work.lookup(claim["source"]) is None]
    detail = f"{len(claims) - len(lost)} of {len(claims)} sources in {CLAIMS} lead to a number"
    return CheckOutcome(
        len(claims) >= 3 and not lost, detail + (f"; not {lost[0][:100]!r}" if lost else "")
    )


@_check
def claims_hold(work: Submission) -> CheckOutcome:
    """Every value is its source's."""
    claims = _claims(work)
    wrong = [claim["text"] for claim in claims if not _holds(work, claim)]
    outcome = _share(len(claims) - len(wrong), len(claims), 1, "claimed values are their source's")
    return outcome._replace(detail=outcome.detail + (f"; not {wrong[0][:100]!r}" if wrong else ""))


def _holds(work: Submission, claim: dict[str, Any]) -> bool:
    recorded = work.lookup(claim["source"])
    if recorded is None:
        return False
    printed = texts.as_printed(float(claim["value"]))
    return printed.within(recorded) or ("%" in claim["text"] and printed.within(100 * recorded))


def _held(work: Submission) -> list[texts.Printed]:
    """Return the values of the claims that hold."""
    return [texts.as_printed(float(c["value"])) for c in _claims(work) if _holds(work, c)]


@_check
def claims_printed(work: Submission) -> CheckOutcome:
    """What is claimed is what the document prints."""
    held = _held(work)
    printed = texts.Known(number.value for number in texts.printed_numbers(work.own, every=True))
    shown = sum(number in printed for number in held)
    return _share(shown, len(held), 0.8, "claimed values that hold stand in the document")


@_check
def claims_cover(work: Submission) -> CheckOutcome:
    """Half of what the tables print is claimed."""
    claimed = texts.Known(number.value for number in _held(work))
    numbers = [number for table in work.tables for number in table.numbers]
    covered = sum(number in claimed for number in numbers)
    return _share(covered, len(numbers), 0.5, "numbers of the tables are claims that hold")


# numbers


@_check
def results_table(work: Submission) -> CheckOutcome:
    """A table prints results."""
    most = max((len(table.numbers) for table in work.backed_tables), default=0)
    return CheckOutcome(most >= 4, f"{most} numbers in the largest table that is recorded")


def _traced(work: Submission, least: float) -> CheckOutcome:
    numbers = [number for table in work.tables for number in table.numbers]
    found = sum(number in work.known for number in numbers)
    return _share(found, len(numbers), least, "numbers of the tables are recorded")


@_check
def tables_half_recorded(work: Submission) -> CheckOutcome:
    """Half of the tables' numbers are recorded."""
    return _traced(work, 0.5)


@_check
def tables_recorded(work: Submission) -> CheckOutcome:
    """Nearly all of the tables' numbers are recorded."""
    return _traced(work, 0.9)


@_check
def prose_agrees(work: Submission) -> CheckOutcome:
    """The prose cites recorded numbers."""
    prose = [line for line in work.own.splitlines() if "|" not in line and line[:1] != "#"]
    numbers = texts.printed_numbers("\n".join(prose))
    found = sum(number in work.known for number in numbers)
    return _share(found, len(numbers), 0.5, "numbers of the prose are recorded")


# baseline

_PLAIN = (
    r"\b(?:base ?lines?|base|random|majority|chance|vanilla|standard|default|naive|dummy|uniform"
    r"|constant|static|erm)\b"
)
_REDUCED = r"\b(?:w/o|without|no|minus|only|less|ablat\w*|removed|fixed|single)\b|(?:^| )[-−–+] ?\w"  # noqa: RUF001


def _labelled(work: Submission, pattern: str, name: str) -> CheckOutcome:
    """Look in the backed tables for a *name*: a label of that kind, or told to be one."""
    if not work.backed_tables:
        return CheckOutcome(False, "no table whose numbers are recorded")
    told = " ".join(s.lower() for s in work.sentences if name in s.lower() and "|" not in s)
    for table in work.backed_tables:
        for label in table.labels:
            plain = " ".join(label.lower().replace("_", " ").split())[:200]
            if re.search(pattern, plain) or (len(plain) > 2 and plain in told):
                return CheckOutcome(True, f"{label[:100]!r} in a table")
    return CheckOutcome(False, f"no row or column that is called or described as {name}")


@_check
def baseline_compared(work: Submission) -> CheckOutcome:
    """A table compares with a baseline."""
    return _labelled(work, _PLAIN, "baseline")


@_check
def ablation_compared(work: Submission) -> CheckOutcome:
    """A table shows an ablation."""
    for table in work.backed_tables:
        if "ablat" in table.context.lower():
            return CheckOutcome(True, "a table is headed as ablation")
    return _labelled(work, _REDUCED, "ablation")


@_check
def variants_compared(work: Submission) -> CheckOutcome:
    """At least three variants stand side by side."""
    most = max((len(table.rows) for table in work.backed_tables), default=0)
    return CheckOutcome(most >= 3, f"{most} rows in the largest table whose numbers are recorded")


# seeds


@_check
def spread_given(work: Submission) -> CheckOutcome:
    """A table gives uncertainty."""
    pattern = r"(?:±|\+/-|\\pm)\s*\d|\b(?:std|s\.?d\.?|sem|stderr|deviation|ci|interval|variance)\b"
    for table in work.backed_tables:
        cells = " ".join([*table.header, *(cell for row in table.rows for cell in row)])
        if found := re.search(pattern, cells.replace("_", " "), re.IGNORECASE):
            return CheckOutcome(True, f"{found[0]!r} in a table")
    return CheckOutcome(False, "no spread in a table whose numbers are recorded")


# figures


@_check
def figures_real(work: Submission) -> CheckOutcome:
    """The images are images."""
    broken = [link for link in work.images if not _is_image(work.image(link))]
    outcome = _share(len(work.images) - len(broken), len(work.images), 1, "links lead to an image")
    return outcome._replace(
        detail=outcome.detail + (f"; not {broken[0][:100]!r}" if broken else "")
    )


def _is_image(data: bytes) -> bool:
    """Whether *data* is a PNG, JPEG or SVG with something in it."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = (int.from_bytes(data[place : place + 4], "big") for place in (16, 20))
        return data[12:16] == b"IHDR" and min(width, height) >= 16 and b"IDAT" in data[:4096]
    if data.startswith(b"\xff\xd8\xff"):
        return len(data) > 500 and b"\xff\xda" in data  # the start of a scan
    drawn = rb"<(?:path|rect|line|circle|ellipse|poly(?:line|gon)|text|image|use)\b"
    return b"<svg" in data[:2000] and re.search(drawn, data) is not None


@_check
def figures_discussed(work: Submission) -> CheckOutcome:
    """The text speaks of the figures."""
    if not work.images:
        return CheckOutcome(False, "no images linked")
    told = [s for s in texts.sentences(texts.without_images(work.own)) if not s.startswith("#")]
    pattern = re.compile(r"\b(?:fig(?:ures?|s?\.)|plots?|charts?|curves?|panels?|diagrams?)", re.I)
    count = sum(bool(pattern.search(sentence)) for sentence in told)
    return CheckOutcome(count > 0, f"{count} sentences speak of figures")


# limits

_LIMIT_HEADING = r"limit|risk|threat|caveat|challenge|weakness|mitigation|shortcoming"
_LIMIT = (
    r"\b(?:limitations?|limited|limits|caveats?|threats? to|risks?|drawbacks?|weakness\w*|shortcomings?"
    r"|mitigat\w+|(?:may|might|could) (?:not|fail)|fails? (?:when|if|to)|cannot|(?:was|were|is|are|did|do)"
    r" not (?:test|evaluat|general|cover|includ|show|capture)\w*|only (?:one|two|a|tested|evaluated)"
    r"|small(?:er)? (?:sample|scale|data\w*|models?|test|number)|future work)\b"
)


def _limit_sentences(work: Submission) -> list[str]:
    told = [
        s for section in work.sections_about(_LIMIT_HEADING) for s in texts.sentences(section.body)
    ]
    told += [s for s in work.sentences if re.search(_LIMIT, s, re.IGNORECASE)]
    return [s for s in dict.fromkeys(told) if len(texts.words(s)) >= 5]


@_check
def limits_stated(work: Submission) -> CheckOutcome:
    """A limit or risk is stated."""
    told = _limit_sentences(work)
    return CheckOutcome(bool(told), told[0].strip()[:100] if told else "no limit or risk is stated")


@_check
def limits_explained(work: Submission) -> CheckOutcome:
    """At least two are stated, and explained."""
    told = _limit_sentences(work)
    count = sum(len(texts.words(sentence)) for sentence in told)
    return CheckOutcome(
        len(told) >= 2 and count >= 25, f"{len(told)} sentences on limits or risks, {count} words"
    )
