"""What a report claims: its results, and neither its settings nor what others have measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.evidence.reports.claims import MOST_CLAIMS, claims_of, empty_cells, read_report

RESULTS = """
# Results

| Method | Accuracy (%) | Steps | Time (s) |
|---|---|---|---|
| **ours** | 85.2 ± 0.4 | 100 | 12.5 |
| base | 81 | 200 | nan |
| tiny | 70.1 | 300 | - |

Ours is better by 4.2%, with a learning rate of 0.001 and $\\alpha = 0.3$ on 5 seeds (p < 0.05).
"""


def texts(text: str) -> list[str]:
    return [claim.text for claim in claims_of("results.md", text)]


def test_results_are_claims_and_settings_beside_them_are_none() -> None:
    assert texts(RESULTS) == ["85.2", "0.4", "12.5", "81", "70.1", "4.2%"]


def test_a_claim_says_where_it_stands() -> None:
    claim = claims_of("results.md", RESULTS)[0]
    assert (claim.document, claim.line, claim.in_table) == ("results.md", 6, True)
    assert (claim.row, claim.column, claim.percent) == ("ours", "Accuracy (%)", True)
    assert (claim.value, claim.slack) == (85.2, pytest.approx(0.05))


def test_cells_without_a_value_are_found() -> None:
    assert empty_cells(RESULTS) == [(7, "base", "Time (s)"), (8, "tiny", "Time (s)")]


def test_a_method_is_not_compared_with_itself() -> None:
    table = (
        "| Method | F1 | Improvement |\n|---|---|---|\n| base | 0.5 | - |\n| ours | 0.6 | 20.0% |"
    )
    assert empty_cells(table) == []


@pytest.mark.parametrize(
    "text",
    [
        "## References\n[1] Them. 85.2% is enough. 2023.",
        "## Related Work\nThey reach 85.2% [1].",
        "## Introduction\nTheir model reaches 85.2% (Doe et al., 2023).",
        "## Future Work\nWe will reach 0.95.",
        "## Experimental Setup\nDropout is 0.1; 20% of the data are held out.",
        "## Method\nWe draw from U(0.5, 2.0).",
        "| Parameter | Value |\n|---|---|\n| lr | 0.001 |\n| dropout | 0.1 |",
        "**Expected Results**\n\n| Method | Accuracy |\n|---|---|\n| ours | 0.9 |",
        "We expect to reach 0.95.",
        "It takes about 15% less, and over 90% are right.",
        "There are 32 messages by 5 agents.",
        "Trained with batch size 32 and weight decay of 1e-5.",
        "The 95% confidence interval",
        "```bash\npython main.py --lr 0.1\n```",
    ],
)
def test_no_claims(text: str) -> None:
    assert texts(text) == []


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("Accuracy rises from 79.12% to 86.42%.", ["79.12%", "86.42%"]),
        ("Ours is 2.3x faster and scores 0.85.", ["2.3x", "0.85"]),
        ("It loses 15%, which could be noise.", ["15%"]),
        ("## 4 Experiments\n### 4.1 Setup\nlr 0.1\n### 4.2 Results\nF1 is 0.8.", ["0.8"]),
        ("The correlation is r = 0.62 (p = 0.03).", ["0.62", "0.03"]),
        ("2. Related Work\n\nThey: 0.9\n\n3. Results\n\nOurs: 0.8", ["0.8"]),
        (
            "## Ablations\n| Variant | F1 |\n|---|---|\n| no_dsr | 0.7 |\n| Dropout | 0.6 |",
            ["0.7", "0.6"],
        ),
        ("| α | F1 |\n|---|---|\n| 0.1 | 0.77 |", ["0.77"]),  # noqa: RUF001
        (
            "baseline 0.3297  0.5563\n     dpo 0.4110  0.5823",
            ["0.3297", "0.5563", "0.4110", "0.5823"],
        ),
    ],
)
def test_claims(text: str, claimed: list[str]) -> None:
    assert texts(text) == claimed


def test_tables_of_html_and_latex() -> None:
    html = (
        "<table>\n<tr><th>Method</th><th>F1</th></tr>\n"
        "<tr><td>ours</td>\n<td>0.85</td></tr></table>"
    )
    latex = (
        "\\begin{tabular}{lc}\n\\toprule\nMethod & F1 \\\\ \\midrule\n"
        "ours & \\textbf{0.85} \\\\\nbase & -- \\\\\n\\end{tabular}"
    )
    for text in (html, latex):
        [claim] = claims_of("paper.md", text)
        assert (claim.value, claim.row, claim.column, claim.line) == (0.85, "ours", "F1", 4)
    assert empty_cells(latex) == [(5, "base", "F1")]


def test_rows_of_metrics() -> None:
    text = "| Metric | Base | Ours |\n|---|---|---|\n| Accuracy | 0.5 | 0.6 |\n| Epochs | 10 | 20 |"
    assert texts(text) == ["0.5", "0.6"]


@pytest.mark.parametrize("piece", ["| x | 0.85 |\n", "accuracy 0.85 and\n", "accuracy 0.85 "])
def test_a_long_document_is_cut_and_says_so(piece: str) -> None:
    text = "| a | b |\n|---|---|\n" * piece.startswith("|") + piece * 30_000
    report = read_report("results.md", text)
    assert len(report.claims) == MOST_CLAIMS
    assert report.left_out == pytest.approx(10_000, rel=0.01)


def test_a_long_document_is_read_in_time() -> None:
    text = (
        RESULTS + "Words that mean nothing stand here and fill the line up to its end.\n" * 40
    ) * 1800
    assert len(text) > 5_000_000
    begin = time.process_time()
    assert len(claims_of("results.md", text)) > 10_000
    assert time.process_time() - begin < 10  # a second on a machine that has nothing else to do


@given(st.text(alphabet=st.sampled_from("|-0.5% \n#<table>tr&\\{}*[]`$~ab"), max_size=200))
def test_any_text_is_read(text: str) -> None:
    report = read_report("results.md", text)
    assert all(claim.line <= text.count("\n") + 1 for claim in report.claims)


def data(*parts: str) -> str:
    root = os.environ.get("MLRBENCH_DATA")
    if not root or not Path(root, *parts).is_file():
        pytest.skip("MLRBENCH_DATA is not set, or lacks this run")
    return Path(root, *parts).read_text()


def test_a_real_report() -> None:
    """Counted by hand: 15 numbers of five tables each, three methods, one sentence."""
    text = data("mlrbench/end2end/gemini/iclr2025_dl4c/results/results.md")
    claims = claims_of("results.md", text)
    assert len(claims) == 3 * 15 + 12 + 1
    assert sum(claim.in_table for claim in claims) == 45


def test_a_value_missing_in_a_real_table() -> None:
    assert empty_cells(data("evidence_minis/paper_fills_nan/results/results.md")) == [
        (14, "Trust", "Ours")
    ]
