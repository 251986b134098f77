"""Write the paper from a plan and from the files of the workspace.

What does not depend on the outcome was written in advance (``plans/<task>/paper.md``), as a paper
is more than its inputs put together. Title, formal method and bibliography are taken from the
inputs, and every number from ``results/claims.json``: one that is not there, or that
``results/metrics.json`` contradicts, stops the paper instead of being filled in.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents.reference.experiments.findings import (
    Cite,
    Metrics,
    confidence,
    resolve,
    rule,
    runs,
    settings,
    spread,
    table,
)
from pytest_mlrbench.agents.reference.request import AgentError, Request

PLANS = Path(__file__).parent / "plans"
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
    idea, proposal, related = (
        sections(request.read(name)) for name in ("idea.md", "proposal.md", "related_work.md")
    )
    plan = sections((PLANS / request.task / "paper.md").read_text("utf-8"))
    try:
        metrics = json.loads(request.read("results/metrics.json"))
        said = json.loads(request.read("results/claims.json"))
        cite = Claims(said["claims"] if isinstance(said, dict) else said, metrics)
        given = {"Title": idea["Title"], "Formally": proposal["Methodology"]}
        given["References"] = related["References"]
        return _compose(request, plan | given, metrics, cite)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise AgentError(2, f"an input of the paper lacks a part: {error!r}.") from None


def _compose(request: Request, plan: dict[str, str], metrics: Metrics, cite: Cite) -> str:
    return f"""# Title

{plan["Title"]}

## Abstract

{plan["Abstract"]}

{_headline(metrics, cite)}

## Introduction

{plan["Introduction"]}

**Hypothesis.** {metrics["hypothesis"]["statement"]} {rule(metrics, cite)}

## Related Work

{plan["Related Work"]}

## Method

{plan["Method"]}

{plan["Formally"]}

## Experiment Setup

{plan["Experiment Setup"]}

{settings(metrics, cite)}

Data: {metrics["data"]}. All of it is repeated for {runs(cite)} seeds. {_provenance(request)}

## Results

{_comparison(metrics, cite)}

{table(metrics, cite)}

{_figures(request, metrics)}

## Analysis

{_ablation(metrics, cite)}

{_further(metrics, cite)}

## Limitations

{plan["Limitations"]}

## Conclusion

{_conclusion(metrics, cite)}

## References

{plan["References"]}
"""


def _label(metrics: Metrics, method: str) -> str:
    return f"“{metrics['methods'][method]['label']}”"


def _score(metrics: Metrics, cite: Cite, method: str, name: str) -> str:
    """Return a method's mean and standard deviation of the metric *name*."""
    metric, label = metrics["metrics"][name], metrics["methods"][method]["label"]
    text = f"{metric['label']} of {label}"
    return spread(cite, f"/methods/{method}/{name}", text, metric["digits"])


def _gain(metrics: Metrics, cite: Cite, other: str) -> str:
    """Return the paired gain over *other* with its interval, in words."""
    digits = metrics["metrics"][metrics["hypothesis"]["metric"]]["digits"]
    mean, low, high = (
        cite(f"/gain_over/{other}/{end}", f"{end} of the gain over {other}", digits)
        for end in ("mean", "low", "high")
    )
    return f"{mean}, with a {confidence(cite)} interval from {low} to {high}"


def _headline(metrics: Metrics, cite: Cite) -> str:
    """Say what came out, in two sentences."""
    name = metrics["hypothesis"]["metric"]
    own, other = (_score(metrics, cite, method, name) for method in ("proposed", "baseline"))
    outcome = "This supports" if metrics["hypothesis"]["held"] else "This does not support"
    return (
        f"Over {runs(cite)} seeds the {metrics['metrics'][name]['label']} was {own} for"
        f" {_label(metrics, 'proposed')} and {other} for {_label(metrics, 'baseline')}; seed by"
        f" seed the gain was {_gain(metrics, cite, 'baseline')}. {outcome} the hypothesis by the"
        " rule that was fixed with it."
    )


def _comparison(metrics: Metrics, cite: Cite) -> str:
    """Compare with the baseline and say why the hypothesis held or failed."""
    wins = cite("/gain_over/baseline/wins", "seeds in which the baseline is beaten", 0)
    return (
        "The table gives mean ± standard deviation over the seeds; arrows point to where better"
        f" values lie. Against {_label(metrics, 'baseline')}, the gain of"
        f" {_label(metrics, 'proposed')} is {_gain(metrics, cite, 'baseline')}, and it is positive"
        f" in {wins} of {runs(cite)} seeds. {_reason(metrics)}"
    )


def _reason(metrics: Metrics) -> str:
    gains = metrics["gain_over"]["baseline"]
    if metrics["hypothesis"]["held"]:
        return "Both conditions are met, size and certainty: the hypothesis held."
    if gains["high"] < 0:
        return "All of the interval is below zero: the hypothesis did not hold, the method harms."
    if gains["low"] <= 0:
        return "An interval that contains zero shows nothing: the hypothesis did not hold."
    return "The gain is certain but smaller than was asked for: the hypothesis did not hold."


def _ablation(metrics: Metrics, cite: Cite) -> str:
    gains, ablation = metrics["gain_over"]["ablation"], _label(metrics, "ablation")
    if gains["low"] > 0:
        meaning = "What distinguishes the two is therefore a cause of the result."
    elif gains["high"] < 0:
        meaning = "What distinguishes the two does damage."
    else:
        meaning = "With these seeds we cannot tell whether what distinguishes the two matters."
    return (
        f"The ablation {ablation} lacks one ingredient. Compared with it the gain is"
        f" {_gain(metrics, cite, 'ablation')}. {meaning}"
    )


def _further(metrics: Metrics, cite: Cite) -> str:
    """Name the winners in the other metrics, and tell what was seen of the mechanism."""
    found = [_winner(metrics, cite, name) for name in metrics["metrics"]]
    found += [
        f"As to the mechanism, the {seen['label']} was"
        f" {spread(cite, f'/observations/{name}', seen['label'], 3)}."
        for name, seen in metrics["observations"].items()
    ]
    return " ".join(filter(None, found))


def _winner(metrics: Metrics, cite: Cite, name: str) -> str:
    metric = metrics["metrics"][name]
    if name == metrics["hypothesis"]["metric"] or metric["better"] is None:
        return ""
    means = {key: method[name]["mean"] for key, method in metrics["methods"].items()}
    top = max(means.values()) if metric["better"] == "higher" else min(means.values())
    first, *more = [key for key, mean in means.items() if mean == top]
    shared = f", shared with {' and '.join(_label(metrics, key) for key in more)}" if more else ""
    return (
        f"In terms of {metric['label']}, {_label(metrics, first)} comes first with"
        f" {_score(metrics, cite, first, name)}{shared}."
    )


def _provenance(request: Request) -> str:
    """Name what a reader can check, as far as it is there."""
    there = [
        f"{what} (`{name}`)"
        for what, name in (
            ("the code", "code"),
            ("the log of the run", "results/log.txt"),
            ("all measured values", "results/metrics.json"),
        )
        if (request.workspace / name).exists()
    ]
    return f"Beside this paper lie {', '.join(there)}."


def _figures(request: Request, metrics: Metrics) -> str:
    """Return the figures that results.md shows and that exist, numbered and told apart."""
    shown = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", request.read("results/results.md"))
    there = [
        (text, file) for text, file in shown if (request.workspace / "results" / file).is_file()
    ]
    told = (
        "Figure 1 shows how much single seeds differ, Figure 2 how the methods compare by"
        f" {metrics['curve']['x_label']}."
    )
    return "\n\n".join(
        [
            *([told] if len(there) == 2 else []),
            *(
                f"![{text}]({file})\n\n*Figure {number}. {text}.*"
                for number, (text, file) in enumerate(there, start=1)
            ),
        ]
    )


def _conclusion(metrics: Metrics, cite: Cite) -> str:
    name = metrics["hypothesis"]["metric"]
    metric = metrics["metrics"][name]
    own, other = (
        cite(f"/methods/{key}/{name}/mean", f"mean {metric['label']}, {key}", metric["digits"])
        for key in ("proposed", "baseline")
    )
    numbers = f"a mean {metric['label']} of {own} against {other} for the baseline"
    if metrics["hypothesis"]["held"]:
        return (
            f"In this setting the idea worked: {_label(metrics, 'proposed')} arrived at {numbers}."
            " Whether it carries over to other data and larger models is open, and the limitations"
            " above say why it might not."
        )
    meaning = (
        "The evidence speaks against the method here"
        if metrics["gain_over"]["baseline"]["high"] < 0
        else "No sufficient effect was shown here, which is not to say that there is none"
    )
    return (
        f"In this setting the idea did not prove itself: {_label(metrics, 'proposed')} arrived at"
        f" {numbers}. {meaning}. We report this as the negative result that it is; about"
        " conditions we did not try it says nothing."
    )
