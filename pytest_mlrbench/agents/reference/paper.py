"""Write the paper from the files of the workspace.

The words come from the idea, the proposal and the related work, every number from
``results/claims.json``: one that is not there, or that ``results/metrics.json`` contradicts, stops
the paper instead of being filled in.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_mlrbench.agents.reference.experiments.findings import (
    Metrics,
    discussion,
    resolve,
    rule,
    runs,
    setup,
    table,
    verdict,
)
from pytest_mlrbench.agents.reference.request import AgentError, Request

SOURCE = "results/metrics.json#"


class Claims:
    """The numbers of ``claims.json``, each checked against its source before it is printed."""

    def __init__(self, claims: list[dict[str, Any]], metrics: Metrics) -> None:
        self._values = {claim["source"]: claim["value"] for claim in claims}
        self._metrics = metrics

    def __call__(self, pointer: str, text: str, digits: int) -> str:
        """Print a number, provided that its claim and its source agree."""
        try:
            value, measured = self._values[SOURCE + pointer], resolve(self._metrics, pointer)
        except LookupError:
            raise AgentError(2, f"results/claims.json has no source for: {text}.") from None
        if abs(value - measured) > 0.51 * 10**-digits:
            raise AgentError(
                2, f"results/claims.json says {value} for: {text}, but the source says {measured}."
            )
        return f"{value:.{digits}f}"


def sections(text: str) -> dict[str, str]:
    """Return heading → body, for headings of every level."""
    parts = re.split(r"^#{1,6} +(.+?) *$", text, flags=re.MULTILINE)
    return {head: body.strip() for head, body in zip(parts[1::2], parts[2::2], strict=True)}


def compose(request: Request) -> str:
    """Return the paper as Markdown.

    :raises AgentError: an input is missing, or a number has no source.
    """
    idea, proposal, related, results = (
        sections(request.read(name))
        for name in ("idea.md", "proposal.md", "related_work.md", "results/results.md")
    )
    try:
        metrics = json.loads(request.read("results/metrics.json"))
        cite = Claims(json.loads(request.read("results/claims.json")), metrics)
        return _compose(request, idea, proposal, related, results, metrics, cite)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise AgentError(2, f"an input of the paper lacks a part: {error!r}.") from None


def _compose(
    request: Request,
    idea: dict[str, str],
    proposal: dict[str, str],
    related: dict[str, str],
    results: dict[str, str],
    metrics: Metrics,
    cite: Claims,
) -> str:
    statement = metrics["hypothesis"]["statement"]
    found = verdict(metrics, cite)
    return f"""# Title

{idea["Title"]}

## Abstract

{idea["Motivation"]} We test this hypothesis: {statement} {found}

## Introduction

{proposal["Introduction"]}

**Hypothesis.** {statement} {rule(metrics, cite)}

**Contributions.** {_contributions(metrics, cite)}

## Related Work

{related["Related Work"]}

## Method

{proposal["Methodology"]}

## Experiment Setup

{proposal["Experimental design"]}

{proposal["Metrics"]}

{setup(metrics, cite)}

{_provenance(request)}

## Results

Mean ± standard deviation over the seeds (↑ higher is better, ↓ lower is better).

{table(metrics, cite)}

{found}

{discussion(metrics, cite)}

{_figures(request)}

## Limitations

{results["Limitations"]}

## Conclusion

{_conclusion(metrics, cite)}

## References

{related["References"]}
"""


def _contributions(metrics: Metrics, cite: Claims) -> str:
    proposed, baseline, ablation = (
        f"“{metrics['methods'][key]['label']}”" for key in ("proposed", "baseline", "ablation")
    )
    kind = "positive" if metrics["hypothesis"]["held"] else "negative"
    return (
        f"A comparison of {proposed} with {baseline} over {runs(cite)} paired seeds; an ablation"
        f" ({ablation}) that isolates the part that should matter; and a {kind} answer, decided by"
        " a rule in the code and not by its author."
    )


def _provenance(request: Request) -> str:
    """Name what a reader can check, as far as it is there."""
    there = (
        f"{what} (`{name}`)"
        for what, name in (
            ("the code", "code"),
            ("the log of the run", "results/log.txt"),
            ("all measured values", "results/metrics.json"),
        )
        if (request.workspace / name).exists()
    )
    return f"Beside this paper: {', '.join(there)}."


def _figures(request: Request) -> str:
    """Return the figures that results.md shows and that exist, numbered."""
    shown = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", request.read("results/results.md"))
    there = [
        (text, file) for text, file in shown if (request.workspace / "results" / file).is_file()
    ]
    return "\n\n".join(
        f"![{text}]({file})\n\n*Figure {number}. {text}.*"
        for number, (text, file) in enumerate(there, start=1)
    )


def _conclusion(metrics: Metrics, cite: Claims) -> str:
    name, methods = metrics["hypothesis"]["metric"], metrics["methods"]
    metric = metrics["metrics"][name]
    proposed, baseline = (
        cite(
            f"/methods/{key}/{name}/mean",
            f"{metric['label']} of {methods[key]['label']}",
            metric["digits"],
        )
        for key in ("proposed", "baseline")
    )
    numbers = (
        f"With “{methods['proposed']['label']}” the mean {metric['label']} was {proposed}, with"
        f" “{methods['baseline']['label']}” {baseline}."
    )
    if metrics["hypothesis"]["held"]:
        return (
            f"The hypothesis held in this setting. {numbers} Whether this carries over to other"
            " data and larger models is open, and the limitations above say why it might not."
        )
    against = metrics["gain_over"]["baseline"]["high"] < 0
    meaning = (
        "it speaks against the method here" if against else "no sufficient effect was shown here"
    )
    return (
        f"The hypothesis did not hold in this setting. {numbers} We report this as a negative"
        f" result: {meaning}, and it says nothing about conditions we did not try."
    )
