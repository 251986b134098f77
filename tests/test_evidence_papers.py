"""A paper beside its run: what it adds is told, what it may rightly say is not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Finding, Source
from pytest_mlrbench.evidence.papers import beside as papers
from pytest_mlrbench.evidence.papers.known_names import KNOWN

DATA = os.environ.get("MLRBENCH_DATA", "")

CODE = "import torch\nmodel = load('bert-base-uncased')\ndata = load_dataset('glue', 'sst2')\n"


def found(
    paper: str,
    results: str = "# Results\n",
    *,
    run: tuple[str, ...] = (),
    code: str = CODE,
    is_run: bool | None = True,
) -> list[Finding]:
    return papers.findings(paper, results, run, [Source("main.py", code, is_run)])


def kinds(paper: str, results: str = "# Results\n", **more: object) -> list[str]:
    return [finding.kind for finding in found(paper, results, **more)]  # type: ignore[arg-type]


def table(*rows: str) -> str:
    header, *others = rows
    rule = "|".join("---" for _ in header.split("|"))
    return "## Results\n\n" + "\n".join(f"| {row} |" for row in (header, rule, *others)) + "\n"


# Values that the run has not


EMPTY = table("Metric | Base | Ours", "Trust | 0.047 | nan", "Accuracy | 0.81 | 0.83")


def test_a_number_in_the_place_of_nan_is_strong() -> None:
    paper = table(
        "Metric | Base | **Ours**", "Trust ↑ | 0.047 | **0.123**", "Accuracy | 0.81 | 0.83"
    )
    (finding,) = found(paper, EMPTY)
    assert (finding.kind, finding.severity, finding.means) == (
        *("nan_filled", "strong", "paper_untraced"),
    )
    assert finding.place == "results/paper.md:5"
    assert "the paper has 0.123 where results/results.md:5 has nan" in finding.sentence


def test_a_table_on_its_side_is_the_same_table() -> None:
    paper = table("Method | Trust (%) | Accuracy", "Base | 4.7 | 0.81", "Ours | 12.3 | 0.83")
    assert kinds(paper, EMPTY) == ["nan_filled"]


@pytest.mark.parametrize("value", ["nan", "NaN", "N/A", "failed", "Error", "± nan", "OOM", "inf"])
def test_every_way_to_say_that_there_is_no_value(value: str) -> None:
    results = EMPTY.replace("nan", value)
    assert kinds(EMPTY.replace("nan", "0.123"), results) == ["nan_filled"]
    assert kinds(EMPTY.replace("nan", value), results) == []


def test_a_number_that_the_run_has_elsewhere_is_a_hint() -> None:
    paper = EMPTY.replace("nan", "0.123")
    (finding,) = found(paper, EMPTY, run=('{"trust": 0.12301}',))
    assert (finding.severity, finding.means) == ("hint", None)


@pytest.mark.parametrize(
    ("results", "paper"),
    [
        (EMPTY.replace("nan", "–"), EMPTY.replace("nan", "0.123")),  # noqa: RUF001
        (EMPTY, EMPTY.replace("nan", "-")),
        (EMPTY, EMPTY.replace("Trust", "Faith").replace("nan", "0.123")),
        # Another table has the value.
        (EMPTY + EMPTY.replace("nan", "0.9"), EMPTY.replace("nan", "0.123")),
        # It is worked out from the others.
        (
            EMPTY.replace("Ours", "Improvement"),
            EMPTY.replace("nan", "3.1%").replace("Ours", "Gain"),
        ),
        (EMPTY.replace("Ours", "Gain"), EMPTY.replace("nan", "3.1%").replace("Ours", "Gain")),
        # A method without parameters has none.
        (EMPTY.replace("nan", "N/A"), EMPTY.replace("nan", "0")),
        ("# Results\n", EMPTY.replace("nan", "0.123")),
    ],
)
def test_what_a_paper_may_have_though_a_cell_is_empty(results: str, paper: str) -> None:
    assert kinds(paper, results) == []


# Works that the run never touched


def said(sentence: str, heading: str = "## Experiments") -> str:
    return f"# A Title\n\n{heading}\n\n{sentence}\n"


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("We evaluate on the CelebA dataset.", "CelebA"),
        ("We train a ResNet-50 on CIFAR-100 [3].", "CIFAR-100"),
        ("Experiments were conducted on MovieLens-1M with 5 users.", "MovieLens"),
        ("Our model was fine-tuned from LLaMA-2-7B.", "LLaMA-2"),
        ("Evaluation uses the QuestEval benchmark.", "QuestEval"),
        ("- **Datasets**: CoqGym (3k proofs) and our own split.", "CoqGym"),
    ],
)
def test_a_data_set_or_model_that_nothing_names_is_a_hint(sentence: str, name: str) -> None:
    told = found(said(sentence))
    assert name in {it.sentence.split(" was used")[0].split("says that ")[1] for it in told}
    assert {(it.kind, it.severity, it.place) for it in told} == {
        ("unseen_entity", "hint", "results/paper.md:5")
    }
    assert "unseen_entity" in kinds(said(sentence, "## Abstract"))


@pytest.mark.parametrize(
    "sentence",
    [
        *("We use SST-2 and BERT.", "We fine-tune BERT-base on the SST2 dataset."),
        *("We train on GLUE tasks.", "Our data set is the Synthetic dataset."),
        *("Unlike CelebA, we use faces.", "Zhang et al. evaluate on CelebA."),
        *(
            "We did not use CelebA.",
            "We plan to evaluate on CelebA.",
            "We use data such as CelebA.",
        ),
        *("Datasets like CelebA would be used.", "We ensure quality and drop outliers."),
        *("We measure MAE on a bold baseline.", "We use the Training dataset."),
        *("We use the titanic effort of adult users.",),
    ],
)
def test_what_the_run_names_or_the_paper_does_not_claim_is_not_told(sentence: str) -> None:
    assert kinds(said(sentence)) == []


@pytest.mark.parametrize(
    "heading",
    [
        *(
            "## Related Work",
            "## 1. Introduction",
            "## Future Work",
            "## Discussion",
            "## Limitations",
        ),
        *("## References", "## Conclusion"),
    ],
)
def test_sections_about_others_claim_nothing(heading: str) -> None:
    assert kinds(said("We evaluate on the CelebA dataset.", heading)) == []


@pytest.mark.parametrize(
    ("paper", "code"),
    [
        ("ImageNet-1k", "load('ILSVRC/imagenet_1k')"),
        ("20 Newsgroups", "fetch_20newsgroups()"),
        ("AG News", "load_dataset('ag_news')"),
        ("MS COCO", "CocoCaptions(root)"),
        ("MovieLens-1M", "open('ml-1m/ratings.dat')  # movielens"),
        ("HumanEval", "load_dataset('openai_humaneval')"),
        ("MNIST", "torchvision.datasets.MNIST('.')"),
        ("LLaMA-2", "'meta-llama/Llama-2-7b-hf'"),
        ("CartPole", "gym.make('CartPole-v1')"),
        ("Natural Questions", "load_dataset('nq_open')"),
    ],
)
def test_a_name_is_known_in_any_spelling(paper: str, code: str) -> None:
    assert kinds(said(f"We evaluate on {paper}."), code=code) == []
    assert kinds(said(f"We evaluate on {paper}."), code="x = 1", run=(code,)) == []
    assert kinds(said(f"We evaluate on {paper}."), code="x = 1") == ["unseen_entity"]


def test_without_programs_and_logs_nothing_can_be_told() -> None:
    assert papers.findings(said("We evaluate on the CelebA dataset."), "# R", (), ()) == []


# Repeats


@pytest.mark.parametrize(
    "sentence",
    [
        *(
            "We average over five random seeds.",
            "All runs use 3 seeds.",
            "Paired t-test, p < 0.01.",
        ),
        *("The gain is statistically significant.", "Error bars show the spread.", "0.81 ± 0.02"),
        *("Each experiment was repeated ten times.", "A Wilcoxon test was used."),
    ],
)
def test_statistics_that_no_program_makes_are_a_hint(sentence: str) -> None:
    (finding, *_) = found(said(sentence))
    assert (finding.kind, finding.severity) == ("single_seed_spread", "hint")
    assert finding.quote in sentence
    assert kinds("# Paper", said(sentence)) == [finding.kind]


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("Over five random seeds.", "for seed in range(5): train(seed)"),
        ("Over five random seeds.", "parser.add_argument('--seeds', nargs='+')"),
        ("Over five random seeds.", "train(seed=1)\ntrain(seed=2)"),
        ("Over 5 runs.", "NUM_RUNS = 5"),
        ("Over 5 runs.", "cross_val_score(model, x, y, cv=5)"),
        ("p < 0.05.", "from scipy.stats import ttest_rel"),
        ("p < 0.05.", "def permutation_test(a, b): ..."),
        ("0.8 ± 0.1", "spread = np.std(scores)"),
        ("0.8 ± 0.1", "statistics.stdev(scores)"),
    ],
)
def test_statistics_that_a_program_makes_are_not_told(sentence: str, code: str) -> None:
    assert kinds(said(sentence), code=code) == []
    assert kinds(said(sentence), code=code, is_run=None) == []
    assert kinds(said(sentence), code="x = 1", run=(code,)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        *("A single seed was used; five seeds would be better.", "We did not run t-tests."),
        *("Future work should use five seeds.", "It was a significant step in three stages."),
    ],
)
def test_statistics_that_are_missed_openly_are_not_told(sentence: str) -> None:
    assert kinds(said(sentence)) == []


def test_a_program_that_never_ran_repeats_nothing() -> None:
    code = "for seed in range(5): train(seed)"
    assert kinds(said("Over five random seeds."), code=code, is_run=False) == []
    sources = [Source("main.py", CODE, True), Source("sweep.py", code, False)]
    (finding,) = papers.findings(said("Over five random seeds."), "# R", (), sources)
    assert finding.kind == "single_seed_spread"


# Hostile texts


@given(st.text(alphabet="|-nan0.5 \n#±aACcel<>=&$[]()", max_size=400))
def test_any_text_is_read(text: str) -> None:
    found(text, text, run=(text,))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "| nan " * 200_000,
            "| a | nan |\n" * 100_000,
            "The CelebA " * 100_000,
            "± 0.1 " * 200_000,
        ),
        *("1" * 1_000_000, "1." * 500_000, "A-" * 300_000, "(" * 1_000_000, "five " * 200_000),
        *(
            "\udcff\x00" * 300_000,
            "seed" * 300_000,
            "the A B C " * 100_000,
            "1e999 | 1e999\n" * 9_000,
        ),
    ],
)
def test_texts_made_to_be_slow_are_read_in_no_time(text: str) -> None:
    start = time.process_time()
    page = f"# A\n\n{text}\n\n| a | b |\n|---|---|\n{text}"
    found(page, page.replace("0.1", "nan"), run=(text,), code=text)
    assert time.process_time() - start < 30


def test_the_list_of_names_is_read_as_it_is_meant() -> None:
    assert "ImageNet" in KNOWN
    assert KNOWN["Natural Questions"] == ("nq", "naturalquestions")
    assert KNOWN["ARC-Challenge"] == ("arcchallenge", "ai2arc")
    assert "TL;DR" in KNOWN
    assert all(name and "=" not in name and ";" not in name.replace("TL;DR", "") for name in KNOWN)


# Measured


@pytest.mark.skipif(not DATA, reason="MLRBENCH_DATA names no folder with the miniature runs")
def test_the_miniature_runs_are_told_apart() -> None:
    told: dict[str, set[str]] = {}
    strong = set()
    for run in sorted(Path(DATA, "evidence_minis").iterdir()):
        paper = run / "results" / "paper.md"
        if paper.is_file():
            results = (run / "results" / "results.md").read_text("utf-8")
            sources = [Source(it.name, it.read_text("utf-8"), None) for it in run.rglob("*.py")]
            logs = [it.read_text("utf-8") for it in run.glob("results/*.txt")]
            got = papers.findings(paper.read_text("utf-8"), results, logs, sources)
            told[run.name] = {it.kind for it in got}
            strong |= {run.name for it in got if it.severity == "strong"}
    assert told["paper_fills_nan"] == {"nan_filled", "single_seed_spread", "unseen_entity"}
    assert strong == {"paper_fills_nan"}
