"""Write ``results.md`` and ``claims.json``: each number of the one is a claim in the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .findings import Metrics, discussion, resolve, rule, setup, table, verdict


class Recorder:
    """Prints numbers of metrics.json and remembers each as a claim."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.claims: dict[str, dict[str, Any]] = {}

    def __call__(self, pointer: str, text: str, digits: int) -> str:
        """Print a number and claim it."""
        printed = f"{resolve(self._metrics, pointer):.{digits}f}"
        value = float(printed) if digits else int(printed)
        source = f"results/metrics.json#{pointer}"
        self.claims.setdefault(source, {"text": text, "value": value, "source": source})
        return printed


def write_report(metrics: Metrics, repeat: int, results: Path) -> int:
    """Write both files into *results* and return the number of claims."""
    cite = Recorder(metrics)
    task, curve, metric = metrics["task"], metrics["curve"], metrics["hypothesis"]["metric"]
    command = f"OMP_NUM_THREADS=1 PYTHONPATH=code python -m experiments.{task} --repeat {repeat}"
    versions = ", ".join(f"{name} {version}" for name, version in metrics["versions"].items())
    limitations = "\n".join(f"- {sentence}" for sentence in metrics["limitations"])
    scored = metrics["metrics"][metric]["label"].capitalize()
    text = f"""# Results: {metrics["title"]}

All numbers below were computed by the code in `code/` and are stored in `results/metrics.json`;
`results/claims.json` says where each one is. The run again: `{command}`

## Hypothesis

{metrics["hypothesis"]["statement"]} {rule(metrics, cite)}

## Setup

{setup(metrics, cite)}
- versions: {versions}

## Results

Mean ± standard deviation over the seeds (↑ higher is better, ↓ lower is better).

{table(metrics, cite)}

![{scored}: every seed (dots), mean and standard deviation](scores.png)

![{curve["caption"]}](curve.png)

The first figure has a dot for every seed, so that one can see how far the methods overlap; the
second shows {curve["label"]} of every method by {curve["x_label"]}.

## Verdict

{verdict(metrics, cite)}

## Findings

{discussion(metrics, cite)}

## Limitations

{limitations}
"""
    (results / "results.md").write_text(text, "utf-8")
    said = {
        "claims": list(cite.claims.values()),
        # A repeat is what decides about the seeds.
        "replay": {
            "command": command.replace("python", "python3").removesuffix(str(repeat)) + "{seed}",
            "seed": repeat,
            "outputs": ["results/metrics.json"],
        },
    }
    claims = json.dumps(said, indent=1, ensure_ascii=False)
    (results / "claims.json").write_text(claims + "\n", "utf-8")
    return len(cite.claims)
