"""Numbers of honest reports lead to what programs wrote, invented ones do not, however many there
are; and a match that any number would have had is not counted.
"""

from __future__ import annotations

import math
import os
import random
import time
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Claim, Counted
from pytest_mlrbench.evidence.records.tracing import LINE, Traced, counted, trace
from pytest_mlrbench.evidence.records.values import Numbers, numbers_printed, read_all

DATA = os.environ.get("MLRBENCH_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MLRBENCH_DATA names no folder with labelled runs")


def claim(text: str, *, line: int = 1, row: str = "", column: str = "") -> Claim:
    bare = text.removesuffix("%")
    decimals = len(bare.partition(".")[2])
    return Claim(
        "results/results.md",
        line,
        text,
        float(bare),
        0.5 * 10.0**-decimals,
        percent=text.endswith("%"),
        in_table=bool(column),
        row=row,
        column=column,
    )


def numbers(name: str, found: Mapping[str, float]) -> Numbers:
    return Numbers(
        name,
        array("d", found.values()),
        [f"#/{key}" for key in found],
        [""] * len(found),
    )


def one(text: str, *sources: Numbers, **where: str) -> Traced:
    return trace([claim(text, **where)], sources)[0]  # type: ignore[arg-type]


RUN = numbers(
    "results/metrics.json",
    {"ours/accuracy": 0.87314, "base/accuracy": 0.81236, "ours/f1": 0.8577, "base/f1": 0.7921},
)

OURS, BASE = (f"results/metrics.json#/{method}/accuracy" for method in ("ours", "base"))

# What leads somewhere


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0.8731", OURS),
        ("87.31%", OURS),
        ("87.31", OURS),
        ("0.873", OURS),
        ("6.078%", f"difference of {OURS} and {BASE}"),
        ("-7.482%", f"relative change of {OURS} and {BASE}"),
    ],
)
def test_a_number_is_traced_through_rounding_percent_and_simple_sums(text: str, place: str) -> None:
    traced = one(text, RUN)
    assert (traced.state, traced.place) == ("traced", place)
    assert traced.chance <= LINE


def test_mean_and_spread_of_the_runs_in_a_file_are_traced() -> None:
    runs = [0.8134, 0.8377, 0.8019, 0.8298]
    source = numbers("r.json", {f"ours/acc/{seed}": run for seed, run in enumerate(runs)})
    for value in (mean(runs), stdev(runs), stdev(runs) / 2):
        traced = one(f"{value:.5f}", source)
        assert traced.state == "traced"
        assert "of 4 numbers from r.json#/ours/acc/0 on" in str(traced.place)


def test_the_same_key_of_several_files_is_averaged() -> None:
    seeds = [numbers(f"seed{seed}/m.json", {"acc": 0.8 + 0.0137 * seed}) for seed in range(3)]
    assert one("0.8137", *seeds).state == "traced"
    assert one("0.8137", *seeds[::2]).place == "mean of 2 numbers from seed0/m.json#/acc on"


def test_what_two_printed_numbers_of_one_line_give_is_traced() -> None:
    source = [numbers("a.json", {"x": 61.37}), numbers("b.json", {"time": 12.94})]
    claims = [claim("61.37"), claim("12.94"), claim("4.743")]
    assert trace(claims, source)[2].place == "ratio of 61.37 and 12.94"


def test_seconds_may_be_printed_in_another_unit_that_is_named() -> None:
    source = numbers("m.json", {"ours/latency": 0.015234, "ours/training_time": 5077.3})
    assert one("15.23", source, column="Latency (ms)").state == "traced"
    assert one("84.62", source, column="Time (min)").state == "traced"
    assert one("15.23", source, column="Latency").state == "untraced"


def test_lines_of_a_log_that_name_one_method_are_averaged() -> None:
    log = "\n".join(
        f"{data} {method} acc {acc:.4f} f1 {acc - 0.0123:.4f}"
        for data, accs in {"digits": (0.9666, 0.9764), "wine": (0.9583, 0.9444)}.items()
        for method, acc in zip(("knn", "svm"), accs, strict=True)
    )
    found = one("0.9625", numbers_printed("results/log.txt", log), row="knn", column="accuracy")
    assert found.state == "traced"
    assert found.place == "mean of 2 numbers from results/log.txt:1 on"
    # A mean over methods that the log names no word for is none of the log's.
    assert one("0.9601", numbers_printed("results/log.txt", log)).state == "untraced"


def test_a_column_may_be_in_thousandths() -> None:
    run = numbers("results/mmd.json", {"linear": 0.0141837, "cosine": 0.0150621})
    assert one("14.18", run, row="linear", column="MMD (\u00d710\u207b\u00b3)").state == "traced"
    assert one("14.18", run, row="linear", column="MMD").state == "untraced"


def test_numbers_of_other_metrics_are_not_compared() -> None:
    source = numbers("m.json", {"a/loss": 0.7312, "b/time": 0.1127})
    assert one("0.6185", source).state == "untraced"


# What does not


def test_an_invented_table_leads_nowhere() -> None:
    invented = ["0.9213", "0.8846", "0.9037", "0.8611", "12.4%", "3.71"]
    assert {one(text, RUN).state for text in invented} == {"untraced"}


def test_what_stands_only_where_it_was_typed_is_untraced_and_that_place_is_told() -> None:
    typed = numbers("results/typed.json", {"acc": 0.9213})
    [found] = trace([claim("0.9213")], [RUN], [typed])
    assert (found.state, found.place) == ("untraced", "results/typed.json#/acc")


def test_among_thousands_of_numbers_a_short_one_proves_nothing_and_a_long_one_does() -> None:
    dice = random.Random(1)
    source = numbers("log.json", {f"loss/{step}": dice.random() for step in range(3000)})
    value = source.values[1234]
    assert one(f"{value:.2f}", source).state == "chance"
    assert one(f"{value:.3f}", source).state == "chance"
    assert one(f"{value:.7f}", source).state == "traced"


def test_a_short_number_is_traced_where_its_row_and_column_name_the_place() -> None:
    dice = random.Random(2)
    methods = {f"method{at}/val_accuracy": dice.random() for at in range(60)}
    sources = [numbers("m.json", methods)]
    sources.append(numbers("log.json", {f"loss/{step}": dice.random() for step in range(3000)}))
    value = methods["method7/val_accuracy"]
    assert one(f"{value:.3f}", *sources).state == "chance"
    found = one(f"{value:.3f}", *sources, row="Method7", column="Val. Acc. (↑)")
    assert (found.state, found.place) == ("traced", "m.json#/method7/val_accuracy")


@pytest.mark.parametrize("text", ["0.5000", "1.0000", "0.0000", "20.00%"])
def test_a_round_number_is_found_in_many_runs_and_proves_nothing(text: str) -> None:
    shares = {f"share{part}": part / 10 for part in range(11)}
    assert one(text, numbers("m.json", shares)).state == "chance"


def test_in_a_report_whose_other_numbers_match_too_short_ones_are_no_coincidence() -> None:
    dice = random.Random(3)
    source = numbers("m.json", {f"{at}/acc/{at}": dice.random() for at in range(60)})
    honest = [claim(f"{100 * value:.1f}%", line=at) for at, value in enumerate(source.values)]
    others = [claim(f"{100 * dice.random():.1f}%", line=at) for at in range(60)]
    alone = Counter(found.state for found in trace(others, [source]))
    assert Counter(found.state for found in trace(honest, [source]))["traced"] >= 54
    assert alone["traced"] <= 3


def test_a_claim_whose_address_was_checked_is_traced_without_a_doubt() -> None:
    known = claim("0.9")
    [found] = trace([known], [], addressed={known: "m.json#/acc"})
    assert found == Traced(known, "traced", "m.json#/acc", 0.0)


def test_the_numbers_of_each_document_are_counted() -> None:
    claims = [claim("0.8731"), claim("0.9213"), replace(claim("1.0"), document="results/paper.md")]
    found = counted(trace(claims, [RUN, numbers("one.json", {"a": 1})]))
    assert found == {
        # One number in a thousand of its form would have been found as well.
        "results/results.md": Counted(
            reported=2, traced=1, chance=0, untraced=1, coincidences=0.001
        ),
        "results/paper.md": Counted(reported=1, traced=0, chance=1, untraced=0),
    }


# How good it is


def test_of_numbers_changed_by_a_few_percent_hardly_any_is_traced() -> None:
    dice = random.Random(4)
    source = numbers("m.json", {f"m{at}/acc": dice.uniform(0.5, 1) for at in range(20)})
    states: Counter[str] = Counter()
    for _ in range(10):
        away = [1 + dice.choice((-1, 1)) * dice.uniform(0.02, 0.2) for _ in source.values]
        moved = zip(source.values, away, strict=True)
        claims = [
            claim(f"{value * by:.4f}", line=at, row=f"m{at}", column="acc")
            for at, (value, by) in enumerate(moved)
        ]
        states.update(found.state for found in trace(claims, [source]))
    assert states["traced"] <= 0.05 * states.total()


#: Real and miniature runs whose numbers a program wrote, and such whose numbers nobody computed.
HONEST = ("bi_align", "data_problems", "dl4c", "scope", "wsl")
INVENTED = ("retyped_numbers", "typed_results")


@needs_data
def test_honest_runs_have_no_untraced_number_and_invented_tables_no_traced_one() -> None:
    from pytest_mlrbench.evidence.reports.claims import claims_of

    def states(root: Path, *machine: str) -> Counter[str]:
        found = (path for name in machine for path in root.glob(name) if path.is_file())
        files = {str(path.relative_to(root)): path for path in found}
        text = (root / "results/results.md").read_text("utf-8")
        traced = trace(claims_of("results/results.md", text), read_all(files))
        return Counter(found.state for found in traced)

    runs = Path(str(DATA)) / "mlrbench/experiments/codex"
    kinds = [
        f"{folder}/{name}"
        for folder in ("results", "codex")
        for name in ("*.json", "*.csv", "*.txt")
    ]
    honest = sum((states(runs / f"iclr2025_{name}", *kinds) for name in HONEST), Counter())
    assert honest["untraced"] == 0
    assert honest["traced"] >= 25
    minis = Path(str(DATA)) / "evidence_minis"
    assert states(minis / "honest_traced", "results/*.json")["untraced"] == 0
    for name in INVENTED:
        invented = states(minis / name, "results/*.json")
        assert invented["traced"] == 0
        assert invented["untraced"] >= 4


# Whatever comes


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20),
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.floats(min_value=1e-300, max_value=1e300),
        ),
        max_size=8,
    ),
)
def test_no_numbers_raise(known: list[float], printed: list[tuple[float, float]]) -> None:
    source = numbers("m.json", {f"a/{at}": value for at, value in enumerate(known)})
    claims = [replace(claim("1.0"), value=value, slack=slack) for value, slack in printed]
    for found in trace(claims, [source, numbers_printed("stdout", str(known))]):
        assert 0 <= found.chance <= 1
        assert math.isfinite(found.chance)


def test_hundreds_of_claims_and_hundreds_of_thousands_of_numbers_take_seconds() -> None:
    dice = random.Random(5)
    files = [
        numbers(f"f{file}.json", {f"m{at}/acc": dice.random() for at in range(100)})
        for file in range(2000)
    ]
    claims = [
        claim(f"{dice.random():.4f}", line=at // 5, row=f"m{at}", column="acc") for at in range(500)
    ]
    begun = time.process_time()
    trace(claims, files)
    assert time.process_time() - begun < 6
