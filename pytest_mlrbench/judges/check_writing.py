"""Checks of the checklist judge that look at the document's writing."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from itertools import chain

from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.judges.check_files import FEW_WORDS, LEAST_NEW, MAX_BYTES, Submission, read
from pytest_mlrbench.judges.checks import CheckOutcome, Registry, example, share

CHECKS = Registry()


# files

#: Stage → fewest and most words of its document.
WORDS = {
    "idea": (60, 800),
    "proposal": (300, 8_000),
    "experiment": (120, 8_000),
    "paper": (600, 15_000),
    "end_to_end": (600, 15_000),
}

# Case matters: "todo" and "xxx" occur in honest prose, "TODO" does not.
_UNFINISHED = (
    r"(?i:lorem ipsum)|\b(?:TODO|TBD|FIXME|XXX+)\b"
    r"|[\[<{](?:insert|your|placeholder|fill|add|describe)\b[^\]>}\n]{0,80}[\]>}]"
    r"|\bto be (?:filled|completed|written|added|determined|announced)\b"
    r"|\b[Yy]our (?:text|title) here\b"
)


@CHECKS.add
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


@CHECKS.add
def finished(work: Submission) -> CheckOutcome:
    """No placeholder stands in it."""
    if not texts.words(work.own):
        return CheckOutcome(False, "it has no words of its own")
    found = re.search(_UNFINISHED, work.own)
    return CheckOutcome(not found, f"{found[0]!r} stands in it" if found else "no placeholder")


@CHECKS.add
def varied(work: Submission) -> CheckOutcome:
    """It is not one passage over and over."""
    runs = texts.ngrams(texts.words(work.own), 5)
    return share(len(set(runs)), len(runs), 0.6, "runs of five words occur for the first time")


# structure


@CHECKS.add
def title(work: Submission) -> CheckOutcome:
    """A title names the work."""
    count = len(texts.words(work.title))
    detail = f"title {work.title[:100]!r}" if work.title else "no title"
    return CheckOutcome(2 <= count <= 40, detail)


def _sections(work: Submission, least: float) -> CheckOutcome:
    present = [name for name, count in work.expected_sections.items() if count >= FEW_WORDS]
    absent = [name for name in work.expected_sections if name not in present]
    outcome = share(len(present), len(work.expected_sections), least, "expected sections")
    return example(outcome, "without", [", ".join(absent)] if absent else [])


CHECKS["sections_begun"] = partial(_sections, least=0.5)
CHECKS["sections_complete"] = partial(_sections, least=1)


# specificity

#: Frequent in every call for papers.
_COMMON = frozenset(
    texts.words(
        """about above across after among approach aspects based because before being below between
        could different during example explore focus following given great groups including
        interest invite known large learning machine methods model models other others paper papers
        present research results several should since specific study submissions technique
        techniques their these thing things those through topic topics toward towards under using
        various what when where which while within without workshop would"""
    )
)


@CHECKS.add
def own_words(work: Submission) -> CheckOutcome:
    """It speaks of the task, and is not a copy of it or of what else was given."""
    task = texts.words(work.task)
    counts = Counter(word for word in task if len(word) > 4 and word not in _COMMON)
    terms = sorted(counts, key=lambda word: (-counts[word], word))[:20]
    used = set(texts.words(work.own)) & set(terms)
    copied = set(texts.ngrams(task, 6))
    runs = texts.ngrams(texts.words(work.raw), 6)
    own = sum(run not in copied for run in runs)
    on_task = share(len(used), len(terms), 0.2, "terms of the task used")
    original = share(own, len(runs), 0.7, "runs of six words not the task's")
    new = work.share_new >= LEAST_NEW
    detail = f"{on_task.detail}, {original.detail}, {work.share_new:.0%} in none of its inputs"
    return CheckOutcome(on_task.passed and original.passed and new, detail)


@CHECKS.add
def details(work: Submission) -> CheckOutcome:
    """It has numbers, formulas or names that the task does not have."""
    pattern = r"\b[A-Z][A-Za-z]{0,20}[A-Z0-9][\w-]{0,20}|\d+(?:\.\d+)?%?|\$[^$\n]{1,200}\$"
    found = set(re.findall(pattern, work.own)) - set(re.findall(pattern, work.task))
    return CheckOutcome(len(found) >= 3, f"{len(found)} of at least 3 details of its own")


# plan, controls, seeds: a sentence of the agent's own says so

_COUNT = (
    r"(?:[3-9]|[1-9]\d{1,3}|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty"
    r"|fifty|hundred)"
)

#: Check → what the sentence does, and a pattern that it matches.
_SAID = {
    "data_named": (
        "names data",
        r"\b(?:data ?sets?|data|benchmarks?|corp(?:us|ora)|samples|examples|images|simulat\w+"
        r"|environments?)\b",
    ),
    "metric_named": (
        "names a measure",
        r"\b(?:accurac\w+|f1|au(?:c|roc|prc)|precision|recall|errors?|loss|perplexity|bleu|rouge"
        r"|rewards?|regret|correlation|likelihood|latency|throughput|runtime|memory|r?mse|mae|r2"
        r"|coverage|calibration|ece|fid|pass@\w+|scores?|rates?|metrics?|complexity|robustness)\b",
    ),
    "comparison_planned": (
        "says what it is compared with",
        r"\b(?:baselines?|compar\w+|versus|vs\.?|outperform\w*|against|state[- ]of[- ]the[- ]art)",
    ),
    "evaluation_planned": (
        "says how it is measured",
        r"\b(?:evaluat\w+|measur\w+|report(?:s|ed)?|test(?:ed|ing)? (?:on|by|with)|validat\w+"
        r"|metrics?)\b",
    ),
    "outcome_expected": (
        "says what is expected",
        r"\b(?:expect\w*|hypothes\w+|predict\w*|anticipat\w+|should|refut\w+|falsif\w+|fails? if"
        r"|if (?:it|this|the idea|we) (?:is|are|holds?|works?|fails?)"
        r"|will (?:improve|reduce|increase|lower|enable|outperform|lead))\b",
    ),
    "ablation_planned": (
        "plans an ablation",
        r"\bablat\w*|\bwithout (?:the|this|each)\b|\b(?:each|one) component\b|\bw/o\b",
    ),
    "repeats_stated": (
        "states three or more seeds, folds or runs",
        rf"\b{_COUNT}[- ](?:[\w-]{{1,20}} ){{0,3}}"
        r"(?:seeds?|runs|repetitions|repeats|replications|trials|folds?|restarts|splits)\b"
        r"|\bseeds?\b[^\d\n]{0,15}\d+(?:(?:,| and|,? to|-|–|\.\.)\s{0,2}\d+){2}"  # noqa: RUF001
        r"|\bseeds?\b[^\d\n]{0,15}[01] ?(?:to|-|–|\.\.) ?(?:[2-9]|[1-9]\d)\b"  # noqa: RUF001
        rf"|\b(?:n_seeds|num_seeds|number of seeds|seeds)\b\W{{1,5}}{_COUNT}\b",
    ),
    "spread_planned": (
        "plans to report spread",
        r"±|\bstandard (?:deviation|error)|\bstd\b|\bconfidence interval|\bvariance\b|\bbootstrap"
        r"|\bp-values?\b|\bt-tests?\b|\bwilcoxon\b|\b[t%] interval"
        r"|\bstatistical(?:ly)? (?:significan\w+|tests?)\b",
    ),
}


def _says(work: Submission, what: str, pattern: str) -> CheckOutcome:
    for sentence in chain(work.told, work.headings):
        if found := re.search(pattern, sentence, re.IGNORECASE):
            return CheckOutcome(True, f"a sentence {what}: {found[0]!r}")
    return CheckOutcome(False, f"no sentence {what}")


for _name, (_what, _pattern) in _SAID.items():
    CHECKS[_name] = partial(_says, what=_what, pattern=_pattern)


# plan: what has not been run yet has no results

#: The past of measuring. After certain words it is no verb: "and reduced costs" may be hoped for.
_REPORTS = re.compile(
    r"\b(?!(?:and|or|as|with|of|for|the|to|shows?|showing|includ\w+|\w+ly)\b)\w+[)*_”]{0,3} "
    r"(?:(?:was|were) )?(?:achieved|attained|obtained|yielded|reached|gave|improved|increased|rose"
    r"|raised|outperformed|surpassed|exceeded|reduced|lowered|cut|dropped|fell|showed|observed"
    r"|found|measured|scored|gained)\b(?! by\b)|\b(?:preliminary|pilot)\b",
    re.IGNORECASE,
)
_HOPES = re.compile(
    r"\b(?:expect\w*|hypothes\w*|anticipat\w*|predict\w*|aim\w*|hope\w*|intend\w*|plan\w*|propos\w*"
    r"|targets?|goals?|objective|will|would|should|could|may|might|can|if|whether|when|until|unless"
    r"|at (?:least|most)|up to|success|criteri\w+|thresholds?|margin|potential\w*|promis\w+|likely"
    r"|example|such as|to (?:reach|achieve|show|obtain|attain|improve|reduce))\b",
    re.IGNORECASE,
)
_CITES = re.compile(
    r"\[\d|\bet al\b|\(?\b(?:19|20)\d\d\)|arXiv|https?:|\b(?:prior|previous|recent|existing) "
)
#: Numbers in it are nobody's measurements: formulas, numbers of sections.
_UNMEASURED = re.compile(r"\$[^$\n]{1,300}\$|\b\d{1,2}(?:\.\d{1,2}){1,3}\.? (?=[A-Z*])")


def _premature(work: Submission) -> list[str]:
    """Return the sentences that report a measured number although nobody has run anything.

    A number may be quoted, hoped for, or recorded by a program in the workspace.
    """
    given = texts.Known(number.value for number in texts.printed_numbers(work.given))
    found = []
    for sentence in work.told:
        alone, pairs = texts.spreads(_UNMEASURED.sub(" ", sentence))
        measured = pairs or (alone and _REPORTS.search(sentence))
        if measured and not _HOPES.search(sentence) and not _CITES.search(sentence):
            numbers = [*alone, *chain.from_iterable(pairs)]
            if not all(number in given or number in work.known for number in numbers):
                found.append(sentence)
    return found


@CHECKS.add
def results_awaited(work: Submission) -> CheckOutcome:
    """It reports nothing as measured."""
    early = _premature(work)
    enough = len(texts.words(work.own)) >= WORDS[work.stage.name][0]
    detail = f"{len(early)} sentences report results before any run"
    if not enough:
        detail += ", of too few to tell"
    return example(CheckOutcome(enough and not early, detail), "as", early)


def _plans(work: Submission, name: str) -> CheckOutcome:
    """Where the outcome is told already, its evaluation is no plan and it is not expected."""
    what, pattern = _SAID[name]
    awaited = results_awaited(work)
    return _says(work, what, pattern) if awaited.passed else awaited


for _name in ("evaluation_planned", "outcome_expected"):
    CHECKS[_name] = partial(_plans, name=_name)


# figures


@CHECKS.add
def figures_real(work: Submission) -> CheckOutcome:
    """The images are images."""
    paths = {link: work.image(link) for link in work.images}
    real = {path for path in set(paths.values()) if path and _is_image(read(path))}
    broken = [link for link, path in paths.items() if path not in real]
    found = len(work.images) - len(broken)
    return example(share(found, len(work.images), 1, "links lead to an image"), "not", broken)


def _is_image(data: bytes) -> bool:
    """Whether *data* is a PNG, JPEG or SVG with something in it."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = (int.from_bytes(data[place : place + 4], "big") for place in (16, 20))
        return data[12:16] == b"IHDR" and min(width, height) >= 16 and b"IDAT" in data[:4096]
    if data.startswith(b"\xff\xd8\xff"):
        return len(data) > 500 and b"\xff\xda" in data  # the start of a scan
    drawn = rb"<(?:path|rect|line|circle|ellipse|poly(?:line|gon)|text|image|use)\b"
    return b"<svg" in data[:2000] and re.search(drawn, data) is not None


@CHECKS.add
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
_LIMIT = re.compile(
    r"\b(?:limitations?|limited|limits|caveats?|threats? to|risks?|drawbacks?|weakness\w*"
    r"|shortcomings?|mitigat\w+|(?:may|might|could) (?:not|fail)|fails? (?:when|if|to)|cannot"
    r"|(?:was|were|is|are|did|do) not (?:test|evaluat|general|cover|includ|show|capture)\w*"
    r"|only (?:one|two|a|tested|evaluated)"
    r"|small(?:er)? (?:sample|scale|data\w*|models?|test|number))\b",
    re.IGNORECASE,
)


def _limits(work: Submission) -> list[str]:
    """Return the sentences on limits and risks: those in such a section, and those that say so."""
    about = work.sections_about(_LIMIT_HEADING)
    told = [sentence for section in about for sentence in texts.sentences(section.body)]
    told += filter(_LIMIT.search, work.sentences)
    return [sentence for sentence in dict.fromkeys(told) if len(texts.words(sentence)) >= 5]


@CHECKS.add
def limits_stated(work: Submission) -> CheckOutcome:
    """A limit or risk is stated."""
    told = _limits(work)
    return example(
        CheckOutcome(bool(told), f"{len(told)} sentences on limits or risks"), "as", told
    )


@CHECKS.add
def limits_explained(work: Submission) -> CheckOutcome:
    """At least two are stated, and explained."""
    told = _limits(work)
    count = sum(len(texts.words(sentence)) for sentence in told)
    return CheckOutcome(
        len(told) >= 2 and count >= 25,
        f"{len(told)} of at least 2 sentences on limits, {count} of at least 25 words",
    )
