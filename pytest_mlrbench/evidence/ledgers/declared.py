"""What a report says of its own data: that they were made up, that calls failed, what it used."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlrbench.evidence.ledgers.copied import read_start

#: What a run reports in, and where it may say for machines what it used.
REPORTS = ("results/results.md", "results/paper.md")
CLAIMS = "results/claims.json"
_MOST = 200
#: "no synthetic data were used" declares nothing.
_DENIED = re.compile(
    r"\b(?:no|not|without|never|neither|rather than|instead of)\s+(?:\w+\s+){0,2}"
    r"(?:simulat|synthe|artificial|toy|dummy|mock|fake|random)\w*",
    re.IGNORECASE,
)
_MADE_UP = re.compile(
    r"\b(?:simulat\w+|synthe(?:tic\w*|si[sz]ed)|artificial(?:ly)?|toy|dummy|mock\w*|fake\w*|"
    r"placeholders?|custom|constructed|illustrative|self-?made|procedural\w*|hand-?(?:written|made|crafted)|bandits?|grid-?\s?worlds?|"
    r"cart-?\s?poles?|moons|blobs|spirals?|swiss roll|concentric|make_\w+|"
    r"(?:randomly|manually|artificially)\s+(?:generated|sampled|drawn|created|written|constructed)|"
    r"(?:generated|random|gaussian|sinusoid\w*|numerical)\s+(?:\w+\s+)?(?:data\w*|examples?|inputs?|"
    r"samples?|points|graphs?|matri\w+|vectors?|tensors?|mixtures?|processes|functions?|"
    r"experiments?|draws?))\b",
    re.IGNORECASE,
)
#: A program that says it makes up what it works on; not one that says it makes up its results.
_MADE_DATA = re.compile(
    r"\b(?:synthetic|dummy|fake|artificial|toy|mock|generated|random|simulated)\s+(?:\w+\s+){0,2}"
    r"(?:data|data-?sets?|examples?|samples?|inputs?|images?|texts?|questions?|corpus|features?)\b",
    re.IGNORECASE,
)
#: Measures that there are only of examples: somebody had to say what is right.
_OF_EXAMPLES = re.compile(
    r"\b(?:accurac\w+|acc|f1|precision|recall|au-?roc|auc|bleu|rouge\S*|perplexit\w+|exact match|"
    r"top-?[15]|folds?|test[- ]set|validation|held[- ]?out|m?ap|iou|fid|wer|error rate)\b",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\b(?:fail\w*|api errors?|unavailable|unable|could not|cannot|not available|unreachable|"
    r"no (?:results|access|answer|response)\w*|timed? ?out)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a run says of itself.

    :param data: names of data sets, and *models* of models, where it says so for machines.
    :param is_made_up: it says that its data were made up, or that it is a simulation.
    :param has_examples: it reports measures that there are only of examples.
    :param failed: it says that something failed.
    """

    data: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    is_made_up: bool = False
    has_examples: bool = False
    failed: bool = False


def read_declared(files: Mapping[str, Path]) -> Declared:
    """Read what the reports among *files* say, and ``claims.json`` if there is one."""
    said = "\n".join(read_start(files[name]) for name in REPORTS if name in files)
    told = _object(read_start(files[CLAIMS])) if CLAIMS in files else {}
    return Declared(
        data=_names(told.get("data")),
        models=_names(told.get("models")),
        is_made_up=told.get("simulation") is True or _says(_MADE_UP, _DENIED.sub(" ", said)),
        has_examples=_says(_OF_EXAMPLES, said),
        failed=_says(_FAILED, said),
    )


def says_made_up(text: str) -> bool:
    """Whether it says that data were made up."""
    return _says(_MADE_DATA, _DENIED.sub(" ", text))


def is_made_up_name(name: str) -> bool:
    """Whether a data set is made up by its name."""
    return _says(_MADE_UP, name) or says_made_up(name)


def _says(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _names(value: object) -> tuple[str, ...]:
    """The names in a list of names, or of objects that have one."""
    entries = value if isinstance(value, list) else ()
    named = (entry.get("name") if isinstance(entry, dict) else entry for entry in entries[:_MOST])
    return tuple(name[:_MOST] for name in named if isinstance(name, str) and name.strip())
