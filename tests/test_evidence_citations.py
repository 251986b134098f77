"""Citations: what is impossible, made up or missing is told; real lists of references are not."""

from __future__ import annotations

import os
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Finding
from pytest_mlrbench.evidence.papers import arxiv_ids, citations
from pytest_mlrbench.evidence.papers.references import Entry, read

TODAY = date(2026, 6, 15)
DATA = os.environ.get("MLRBENCH_DATA", "")

REAL = [
    "Vaswani, A., Shazeer, N., & Parmar, N. (2017). Attention is all you need. *NeurIPS*.",
    "He, K., Zhang, X. and Sun, J., 2016. Deep residual learning. In CVPR (pp. 770-778).",
    "Z. Dai et al., “A Personalized Code Generator,” arXiv:2406.17255, 2024.",
    "Y. Kwon, E. Wu. DataInf: Influence in Tuned Models. arXiv:2310.00902, 2023.",
    "OpenAI. (2023). GPT-4 technical report. https://doi.org/10.48550/arXiv.2303.08774",
]


def found(paper: str, review: str | None = None) -> list[Finding]:
    documents = {"results/paper.md": paper}
    if review is not None:
        documents["related_work.md"] = review
    return citations.findings(documents, TODAY)


def kinds(paper: str, review: str | None = None) -> list[str]:
    return [finding.kind for finding in found(paper, review)]


def listed(*references: str) -> str:
    lines = [f"[{number}] {text}" for number, text in enumerate(references, start=1)]
    return "# A Paper\n\nAs in [1].\n\n## References\n\n" + "\n\n".join(lines)


def entries(text: str) -> tuple[Entry, ...]:
    return read(text).entries


# Reading


@pytest.mark.parametrize("mark", ["[{}] ", "{}. ", "{}) ", "- ", "* ", "[^{}]: ", "", "- [W{}] "])
@pytest.mark.parametrize("heading", ["## References", "**8. Bibliography**", "References  "])
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_every_way_to_list_references_is_read(mark: str, heading: str, gap: str) -> None:
    lines = [mark.format(number) + text for number, text in enumerate(REAL, start=1)]
    text = f"# Paper\n\nWords.\n\n{heading}\n\n{gap.join(lines)}\n\n# Appendix\n\n- no reference"
    titles = [entry.title for entry in entries(text)]
    assert titles == [
        "Attention is all you need",
        "Deep residual learning",
        "A Personalized Code Generator",
        "DataInf: Influence in Tuned Models",
        "GPT-4 technical report",
    ]
    assert [entry.authors.split()[0] for entry in entries(text)] == [
        *("Vaswani,", "He,", "Z.", "Y.", "OpenAI"),
    ]
    assert [entry.year for entry in entries(text)] == [2017, 2016, 2024, 2023, 2023]
    assert [entry.arxiv for entry in entries(text)][2:] == [
        "2406.17255",
        "2310.00902",
        "2303.08774",
    ]
    assert kinds(text) == []


def test_a_review_by_fields_is_read() -> None:
    review = (
        "1. **Title**: One Thing (arXiv:2503.10720)\n   - **Authors**: Yi Fang, Xi Gu\n"
        "   - **Summary**: It is.\n   - **Year**: 2025\n\n"
        "2. **Title:** Another Thing\n   - **Authors:** Ada B., et al.\n   - **Year:** 2024\n\n"
        "**Key Challenges**\n\n1. **Cost**: it costs.\n"
    )
    one, other = entries(review)
    assert (one.title, one.authors, one.year, one.arxiv, one.line) == (
        *("One Thing", "Yi Fang, Xi Gu", 2025, "2503.10720", 1),
    )
    assert (other.title, other.arxiv, other.line) == ("Another Thing", "", 6)
    assert citations.findings({"related_work.md": review}, TODAY) == []


def test_bibtex_is_read_and_its_keys_are_those_of_the_text() -> None:
    keys = ("vaswani2017", "he2016", "dai2024")
    bib = "\n".join(
        f'@article{{{key},\n  title = {{{{The}} Title of {key}}},\n  author="A. Ker and B. Um",\n'
        f"  year={{2020}},\n  eprint = {{2004.0515{n}}}\n}}"
        for n, key in enumerate(keys)
    )
    text = f"As \\citep{{vaswani2017, he2016}} and \\cite{{nobody2021}} say [@dai2024].\n{bib}"
    assert [entry.title for entry in entries(text)] == [f"The Title of {key}" for key in keys]
    assert entries(text)[2].arxiv == "2004.05152"
    assert [(it.kind, it.quote) for it in found(text)] == [
        ("arxiv_id_series", "2004.05150, 2004.05151, 2004.05152"),
        ("citation_without_entry", "nobody2021"),
    ]


# Identifiers


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((it, None) for it in ("0704.0001", "1412.6980", "1501.00001", "2606.29999")),
        *((it, None) for it in ("hep-th/9901001", "math.GT/0309136", "2310.20712")),
        *((it, "impossible") for it in ("2313.01234", "2300.01234", "0703.0001", "2607.00001")),
        *((it, "impossible") for it in ("2311.67890", "2311.00000", "cs/0113017", "2024.12345")),
        *((it, "malformed") for it in ("2311.123", "1412.06980", "2311.1234", "2405.xxxxx")),
        *((it, "malformed") for it in ("240X.XXXXX", "23111.1234")),
        *((it, "patterned") for it in ("2310.12345", "2301.11111", "1304.1234", "2402.09876")),
    ],
)
def test_an_identifier_is_judged_by_what_arxiv_gives_out(name: str, kind: str | None) -> None:
    fault = arxiv_ids.fault(name, TODAY)
    assert (fault and fault[0]) == kind
    for form in ("arXiv:{}", "https://arxiv.org/abs/{}v2", "arXiv preprint arXiv:{}.", "arxiv: {}"):
        assert [it.id for it in arxiv_ids.mentions(f"See {form.format(name)}, there.")] == [name]


def test_what_is_no_identifier_is_not_read_as_one() -> None:
    text = "2311.67890 units; arXiv preprint, 2023; on arXiv (2024); arXiv if any; arXiv: none."
    assert list(arxiv_ids.mentions(text)) == []


def test_an_impossible_identifier_is_strong_and_speaks_for_no_fabrication() -> None:
    paper = listed(*REAL, "A. Real. A Paper of Ours. arXiv:2313.01234, 2023.")
    (finding,) = found(paper)
    assert (finding.kind, finding.severity, finding.means) == (
        "impossible_arxiv_id",
        "strong",
        None,
    )
    assert finding.place == "results/paper.md:17"
    assert finding.quote == "2313.01234"


def test_a_fault_that_a_review_handed_on_is_said_to_come_from_there() -> None:
    review = "1. **Title**: A Paper\n- **Authors**: Jane Doe, John Smith (arXiv:2313.01234)\n"
    review += "2. **Title**: Other Things\n- **Authors**: Ada Ker\n"
    paper = listed(*REAL, "J. Doe et al. A Paper. arXiv:2313.01234, 2023.")
    ours = [it for it in found(paper, review) if "paper" in (it.place or "")]
    assert [it.kind for it in ours] == [
        *("impossible_arxiv_id", "placeholder_authors", "references_beside_review")
    ]
    for finding in ours[:2]:
        assert finding.sentence.endswith("; it comes from related_work.md.")
    assert "Of 6 references, 5 are not in related_work.md" in ours[2].sentence
    theirs = [it for it in found(paper, review) if "related_work.md:" in (it.place or "")]
    assert {it.kind for it in theirs} == {"impossible_arxiv_id", "placeholder_authors"}
    assert all("comes from" not in it.sentence for it in theirs)


def test_neighbours_at_one_distance_are_a_series() -> None:
    assert arxiv_ids.series(["2301.12345", "2302.23456", "2303.34567", "2305.01111"]) == [
        ["2301.12345", "2302.23456", "2303.34567"]
    ]
    # Two parts of one work are handed in together.
    assert arxiv_ids.series(["2301.12345", "2301.12346", "2003.08934", "1706.03762"]) == []


# Entries


@pytest.mark.parametrize(
    "authors",
    [
        *("Anonymous", "[Author names not available]", "Author names not available", "et al."),
        *("[Authors N.A.]", "N/A", "Various", "Not specified", "J. Doe et al", "Doe, J., & Li, X."),
        *("Jane Doe, John Smith", "Smith, J., & Jones, A.", "A. Smith, B. Johnson, C. Lee"),
        *("Alice Johnson and Bob Williams",),
    ],
)
def test_authors_that_stand_for_nobody_are_told(authors: str) -> None:
    paper = listed(*REAL, f"{authors} (2023). A Study of Things. ICML.")
    assert kinds(paper) == ["placeholder_authors"]


@pytest.mark.parametrize(
    "authors",
    [
        *("Smith, L. N.", "Laura Smith, Pieter Abbeel", "Jones, E., & Zhang, Y.", "OpenAI"),
        *("Lee, K.", "Wang, L., Li, X., & Chen, Y.", "The FLAN Team", "Brown, T. B., Mann, B."),
        *("Llion Jones, Łukasz Kaiser", "Unterthiner, T."),
    ],
)
def test_real_people_are_not_told(authors: str) -> None:
    assert kinds(listed(*REAL, f"{authors} (2023). A Study of Things. ICML.")) == []


def test_an_entry_without_authors_or_title_is_told() -> None:
    lines = listed(*REAL, "“Rewards for Code Completion,” (unpublished).")
    assert kinds(lines) == ["incomplete_reference"]
    review = "1. **Title**: A Thing\n - **Year**: 2020\n2. **Title**:\n - **Authors**: Ada Ker\n"
    told = citations.findings({"related_work.md": review}, TODAY)
    assert [it.sentence for it in told] == [
        "A reference names no authors.",
        "A reference names no title.",
    ]


# Keys


def test_keys_without_entry_are_told() -> None:
    paper = listed(*REAL).replace(
        "As in [1].",
        "As in [1], of [2, 3] and [4] and as [9].\n\nDai et al. (2024), Nemo et al., 2020.",
    )
    assert [(it.kind, it.quote, it.place) for it in found(paper)] == [
        ("citation_without_entry", "[9]", "results/paper.md:3"),
        ("citation_without_entry", "Nemo 2020", "results/paper.md:5"),
    ]


def test_what_is_no_citation_is_not_held_against_the_list() -> None:
    paper = listed(*REAL).replace(
        "As in [1].",
        "As in [1] and [2]. Scores in [1, 10], between [5, 9], sizes [64, 128], x[7], [0, 1].\n"
        "`a [8]` $w [9]$ ![fig [7]](f.png) see [10](http://x)\n```\nprint(a) [6]\n```\n"
        "In (June, 2024) at (ICLR, 2025). He and Sun (2017) say so; Vaswani et al. 2017.",
    )
    assert found(paper) == []


def test_a_preprint_a_year_before_and_umlauts_are_the_same_work() -> None:
    paper = listed(*REAL, "Buening, T., & Gan, J. (2025). Strategyproof Things. ICML.")
    assert found(paper.replace("As in [1].", "Büning et al. (2024) differ.")) == []


# Hostile texts


@given(st.text(alphabet="[]()1a.@{}\n*\\ $`,:#-“&Ref", max_size=400))
def test_any_text_is_read(text: str) -> None:
    found(f"{text}\n## References\n{text}", text)


@pytest.mark.parametrize(
    "text",
    [
        *("[1, " * 100_000, "@article{a," * 50_000, "arxiv:" * 100_000, "(Aa & " * 100_000),
        *("$" * 500_001, "`" * 300_001, "- x\n" * 200_000, "**Title**: a\n" * 100_000),
        *("\\cite[" * 100_000, "Aa et al. " * 50_000, "A. " * 200_000, "\x00\ud7ff" * 100_000),
        *("arxiv:2313.00001 " * 50_000, "1. A. B (2020). C d e.\n" * 30_000),
    ],
)
def test_texts_made_to_be_slow_are_read_in_no_time(text: str) -> None:
    start = time.process_time()
    found(f"# A\n{text}\n## References\n\n{text}", text)
    assert time.process_time() - start < 10


# Measured


@pytest.mark.skipif(not DATA, reason="MLRBENCH_DATA names no folder with the published texts")
def test_the_literature_steps_own_output_is_where_impossible_identifiers_are_from() -> None:
    mini = Path(DATA, "evidence_minis", "paper_fills_nan", "results", "paper.md").read_text("utf-8")
    bad = [it for it in found(mini) if it.kind == "impossible_arxiv_id"]
    assert [it.quote for it in bad] == ["2311.67890", "2313.01234"]
    for folder in sorted(Path(DATA, "mlrbench", "end2end").glob("*/*")):
        told = found(
            Path(folder, "results", "paper.md").read_text("utf-8"),
            Path(folder, "related_work.md").read_text("utf-8"),
        )
        for finding in told:
            if finding.severity == "strong" and "paper.md" in (finding.place or ""):
                assert "it comes from related_work.md" in finding.sentence
