"""What the numbers say: the tables and sentences that results.md and the paper share.

Every number goes through a :class:`Cite`. The report's records a claim for it, the paper's looks it
up among the claims: neither can print a number that has no source, and every sentence about the
outcome is chosen here by comparing numbers. Standard library only, the paper must start fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Metrics = Mapping[str, Any]
ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}


class Cite(Protocol):
    """Prints numbers of metrics.json."""

    def __call__(self, pointer: str, text: str, digits: int) -> str:
        """Return the number at *pointer* with *digits* decimals; *text* says what it is."""


def resolve(metrics: Metrics, pointer: str) -> Any:
    """Return what a JSON pointer leads to.

    :raises LookupError: it leads nowhere.
    """
    found: Any = metrics
    for key in pointer.split("/")[1:]:
        found = found[key]
    return found


def spread(cite: Cite, pointer: str, text: str, digits: int) -> str:
    """Return ``mean ± std``."""
    mean = cite(f"{pointer}/mean", f"{text}, mean over seeds", digits)
    return f"{mean} ± {cite(f'{pointer}/std', f'{text}, standard deviation over seeds', digits)}"


def role(method: str) -> str:
    """Return what a method is compared as."""
    return method if method in ("baseline", "proposed", "ablation") else "reference"


def runs(cite: Cite) -> str:
    """Return the number of seeds."""
    return cite("/runs", "number of seeds", 0)


def confidence(cite: Cite) -> str:
    """Return the confidence of the intervals."""
    return f"{cite('/confidence_percent', 'confidence of the intervals in percent', 0)}%"


def _decimals(value: float) -> int:
    """Return how many decimals a number written by hand has: 3 of 0.003, none of 20.0."""
    return len(f"{value:g}".partition(".")[2])


def setup(metrics: Metrics, cite: Cite) -> str:
    """List the data, the settings and the methods."""
    lines = [f"- data: {metrics['data']}"]
    for name, setting in metrics["settings"].items():
        value = cite(f"/settings/{name}/value", setting["label"], _decimals(setting["value"]))
        lines.append(f"- {setting['label']}: {value}")
    lines.append(f"- seeds: {runs(cite)}, each with its own random split")
    lines += [f"- {role(key)}: {method['label']}" for key, method in metrics["methods"].items()]
    return "\n".join(lines)


def settings(metrics: Metrics, cite: Cite) -> str:
    """Return the settings as a Markdown table."""
    rows = [
        f"| {setting['label']} |"
        f" {cite(f'/settings/{name}/value', setting['label'], _decimals(setting['value']))} |"
        for name, setting in metrics["settings"].items()
    ]
    return "\n".join(["| setting | value |", "|---|---|", *rows])


def rule(metrics: Metrics, cite: Cite) -> str:
    """Say when the hypothesis counts as held."""
    hypothesis = metrics["hypothesis"]
    metric = metrics["metrics"][hypothesis["metric"]]
    margin = cite("/hypothesis/margin", "improvement required by the hypothesis", metric["digits"])
    return (
        f"It counts as held if the mean paired improvement in {metric['label']} over the seeds is"
        f" at least {margin} and its {confidence(cite)} t interval lies above zero."
    )


def table(metrics: Metrics, cite: Cite) -> str:
    """Return every metric of every method as a Markdown table."""
    heads = [
        f"{metric['label']}{ARROWS[metric['better']]}" for metric in metrics["metrics"].values()
    ]
    lines = [f"| method | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for key, method in metrics["methods"].items():
        cells = [
            spread(
                cite,
                f"/methods/{key}/{name}",
                f"{metric['label']} of {method['label']}",
                metric["digits"],
            )
            for name, metric in metrics["metrics"].items()
        ]
        lines.append(f"| {method['label']} ({role(key)}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def improvement(metrics: Metrics, cite: Cite, other: str) -> str:
    """Return the paired improvement of the proposed method over *other*, in words."""
    metric = metrics["metrics"][metrics["hypothesis"]["metric"]]
    at = f"/gain_over/{other}"
    text = f"paired improvement in {metric['label']} over {metrics['methods'][other]['label']}"
    mean, low, high = (
        cite(f"{at}/{name}", f"{text}, {words}", metric["digits"])
        for name, words in (("mean", "mean"), ("low", "low end"), ("high", "high end"))
    )
    wins = cite(f"{at}/wins", f"seeds with a {text}", 0)
    interval = f"{confidence(cite)} interval {low} to {high}"
    return f"{mean} ({interval}, better in {wins} of {runs(cite)} seeds)"


def verdict(metrics: Metrics, cite: Cite) -> str:
    """Say whether the hypothesis held, and if not, in which way it failed."""
    hypothesis, gains = metrics["hypothesis"], metrics["gain_over"]["baseline"]
    metric = metrics["metrics"][hypothesis["metric"]]["label"]
    proposed, baseline = (metrics["methods"][key]["label"] for key in ("proposed", "baseline"))
    held = "held" if hypothesis["held"] else "did not hold"
    if hypothesis["held"]:
        why = "That is at least the required margin, and the interval lies above zero."
    elif gains["high"] < 0:
        why = "The method made things worse."
    elif gains["low"] <= 0:
        why = "The interval includes zero: no effect is shown."
    else:
        why = "There is an improvement, but it is below the required margin."
    return (
        f"**The hypothesis {held}.** The mean improvement in {metric} of “{proposed}” over"
        f" “{baseline}” was {improvement(metrics, cite, 'baseline')}. {why}"
    )


def ablation(metrics: Metrics, cite: Cite) -> str:
    """Say what the ablation shows about the part it takes away."""
    gains, label = metrics["gain_over"]["ablation"], metrics["methods"]["ablation"]["label"]
    if gains["low"] > 0:
        meaning = "The part that the ablation takes away matters."
    elif gains["high"] < 0:
        meaning = "Without the part that the ablation takes away the result is better."
    else:
        meaning = "The part that the ablation takes away makes no difference these seeds can show."
    numbers = improvement(metrics, cite, "ablation")
    return f"Over the ablation, “{label}”, the mean improvement was {numbers}. {meaning}"


def best(metrics: Metrics, cite: Cite) -> list[str]:
    """Say which methods have the best mean of each metric, whichever they are."""
    sentences, methods = [], metrics["methods"]
    for name, metric in metrics["metrics"].items():
        if metric["better"] is None:
            continue
        means = {key: method[name]["mean"] for key, method in methods.items()}
        top = max(means.values()) if metric["better"] == "higher" else min(means.values())
        winners = [key for key, mean in means.items() if mean == top]
        label = methods[winners[0]]["label"]
        value = spread(
            cite, f"/methods/{winners[0]}/{name}", f"{metric['label']} of {label}", metric["digits"]
        )
        named = " and ".join(f"“{methods[key]['label']}” ({role(key)})" for key in winners)
        sentences.append(f"Best mean {metric['label']}: {named}, {value}.")
    return sentences


def observations(metrics: Metrics, cite: Cite) -> list[str]:
    """List what was measured about the mechanism."""
    return [
        f"{seen['label'].capitalize()}: {spread(cite, f'/observations/{name}', seen['label'], 3)}."
        for name, seen in metrics["observations"].items()
    ]


def discussion(metrics: Metrics, cite: Cite) -> str:
    """Return all findings beside the verdict, as a list."""
    found = [ablation(metrics, cite), *best(metrics, cite), *observations(metrics, cite)]
    return "\n".join(f"- {sentence}" for sentence in found)
