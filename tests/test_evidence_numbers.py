"""A reader's numbers: whatever the style they are printed in, value and precision are read back."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.evidence.reports.numbers import Number, numbers_in, numbers_of

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def values(text: str) -> list[float]:
    return [number.value for number in numbers_of(text)]


def only(text: str) -> Number:
    [number] = numbers_of(text)
    return number


@pytest.mark.parametrize(
    ("text", "value", "slack"),
    [
        ("0.8571", 0.8571, 0.00005),
        (".85", 0.85, 0.005),
        ("**0.85**", 0.85, 0.005),
        ("_0.85_", 0.85, 0.005),
        (r"\textbf{0.85}", 0.85, 0.005),
        (r"\num{1.2e-4}", 1.2e-4, 5e-6),
        ("`0.85`", 0.85, 0.005),
        ("−0.5", -0.5, 0.05),  # noqa: RUF001
        ("$-$0.5", -0.5, 0.05),
        ("1.2e-4", 1.2e-4, 5e-6),
        ("1.2 × 10^{-4}", 1.2e-4, 5e-6),  # noqa: RUF001
        (r"$1.2\times10^{-4}$", 1.2e-4, 5e-6),
        ("1.2×10⁻⁴", 1.2e-4, 5e-6),  # noqa: RUF001
        ("2.1×10<sup>-4</sup>", 2.1e-4, 5e-6),  # noqa: RUF001
        ("$10^{-3}$", 1e-3, 5e-4),
        ("1,234,567.8", 1234567.8, 0.05),
        ("1{,}234", 1234, 0.5),
        ("1.2k", 1200, 50),
        ("12.3 ms", 12.3, 0.05),
        (r"\multirow{2}{*}{0.5}", 0.5, 0.05),
        ("0.85^{*}", 0.85, 0.005),
        ("<td style='width:1.5em'>0.85</td>", 0.85, 0.005),
        ("F1=0.85.", 0.85, 0.005),
    ],
)
def test_styles(text: str, value: float, slack: float) -> None:
    number = only(text)
    assert number.value == pytest.approx(value)
    assert number.slack == pytest.approx(slack)
    assert not number.percent


@pytest.mark.parametrize(
    "text",
    [
        "12.3%",
        r"12.3\%",
        "**12.3**%",
        r"$12.3$\%",
        "12.3 percent",
        "12.3 pp",
        "12.3 percentage points",
        "12.3&#37;",
    ],
)
def test_percent(text: str) -> None:
    number = only(text)
    assert (number.value, number.percent) == (12.3, True)


@pytest.mark.parametrize("text", ["2.3x", "2.3×", r"2.3$\times$", "2.5-fold", "3 times"])  # noqa: RUF001
def test_multiples(text: str) -> None:
    assert only(text).times


@pytest.mark.parametrize(
    "text",
    ["0.85 ± 0.02", r"$0.85 \pm 0.02$", "0.85+/-0.02", r"0.85_{\pm 0.02}", "0.85 &plusmn; 0.02"],
)
def test_a_mean_and_its_spread(text: str) -> None:
    mean, spread = numbers_of(text)
    assert (mean.value, mean.spread, spread.value, spread.spread) == (0.85, False, 0.02, True)


@pytest.mark.parametrize("text", ["10-20%", "10–20%", "10 to 20%", "10%–20%"])  # noqa: RUF001
def test_both_ends_of_a_range_are_percent(text: str) -> None:
    first, second = numbers_of(text)
    assert (first.value, second.value) == (10, 20)
    assert first.percent
    assert second.percent
    assert second.ends_range


@pytest.mark.parametrize(
    "text",
    [
        "GPT-4, BERT-base-110M, Llama-2-7B, Llama 2 7B and GPT-3.5-turbo",
        "Claude 3.7 Sonnet, Gemini 2.5 Pro, claude-3-7-sonnet-20250219",
        "Python 3.10, v1.2, 1.2.3, CUDA 11.8",
        "2024-05-01, May 12, 2024, 12 May 2024, in 2023, 12:30:05.123",
        "arXiv:2311.12345v2, doi 10.1145/12345.6, https://example.org/1.5/2",
        "as in [12] and [1, 2], Figure 3.2, Tables 2 and 3.1, Eq. (4)",
        "results_0.1.json and 0.85.png in run/0.5/a",
        "### 3.2 Results\n\n1. First\n2) second",
        "W_{0.5} and $x^{0.5}$ in CIFAR-10",
        "```python\nx = 0.5\n```",
        "`lr=0.5`",
        "![0.5](a_0.5.png) [text](https://example.org/0.5)",
        "$$\na = 0.5\n$$",
        "1" * 60,
        "1.5e999",
    ],
)
def test_names_are_no_numbers(text: str) -> None:
    assert values(text) == []


def test_what_a_program_printed_is_read() -> None:
    assert values("```\naccuracy 0.85\n```") == [0.85]


def test_the_line_is_told() -> None:
    assert [number.line for number in numbers_of("a\n0.5\n\n0.6 0.7")] == [2, 4, 4]


@st.composite
def printed(draw: st.DrawFn) -> tuple[str, float, float, bool]:
    """A number in one of the styles, its value, its slack, and whether it is in percent."""
    digits = draw(st.integers(0, 5))
    value = round(draw(st.floats(-9999, 9999, allow_nan=False)), digits)
    text, slack = f"{value:.{digits}f}", 0.5 * 10.0**-digits
    if digits == 0 and 1900 < abs(value) < 2060:
        text, value = "7", 7.0
    kind = draw(
        st.sampled_from(["plain", "commas", "tex", "e", "raised", "percent", "tex percent"])
    )
    if kind == "commas":
        text = f"{value:,.{digits}f}"
    if kind in ("tex", "e", "raised"):
        power = draw(st.integers(-12, 12))
        value, slack = value * 10.0**power, slack * 10.0**power
        text += {
            "tex": rf" \times 10^{{{power}}}",
            "e": f"e{power}",
            "raised": f"×10{str(power).translate(SUPERSCRIPTS)}",  # noqa: RUF001
        }[kind]
    text += {"percent": "%", "tex percent": r"\%"}.get(kind, "")
    if draw(st.booleans()):
        text = text.replace("-", "−", 1) if text.startswith("-") else text  # noqa: RUF001
    around = draw(
        st.sampled_from(["{}", "**{}**", "({})", "${}$", "| {} |", "is {}.", r"\textbf{{{}}}"])
    )
    return around.format(text), value, slack, "percent" in kind


@given(printed())
def test_any_printed_number_is_read_back(case: tuple[str, float, float, bool]) -> None:
    text, value, slack, percent = case
    number = only(text)
    assert number.value == pytest.approx(value)
    assert number.slack == pytest.approx(slack)
    assert number.percent == percent


@given(st.text(alphabet=st.sampled_from("019.,-−%±×xe^_{}()[]|&;<>`$\\*# \nabGT:/~"), max_size=200))  # noqa: RUF001
def test_any_text_is_read(text: str) -> None:
    for number in numbers_of(text):
        assert number.slack >= 0
        assert number.text in text or "&" in text or "<" in text or "`" in text or "_" in text


@given(st.text(max_size=300))
def test_any_unicode_is_read(text: str) -> None:
    list(numbers_in(text))
    list(numbers_of(text))


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1.",
        "1,111",
        "[",
        "![",
        "<td>1",
        "`1",
        "\\cite{",
        "```python\n",
        "$$\n",
        "\\[\n1\n",
        "&amp;1 ",
        "a^{",
        "-1",
        "GPT-4 ",
        "Figure 1, 2 ",
        "# 1.2\n",
        " ",
        "\n",
        "**a",
        "10.1234/",
    ],
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    def spent(length: int) -> float:
        text = piece * (length // len(piece))
        begin = time.process_time()
        sum(1 for _ in numbers_of(text))
        return time.process_time() - begin

    spent(1000)
    assert spent(80_000) < 40 * spent(10_000) + 0.2


@settings(max_examples=30)
@given(st.floats(-1e6, 1e6), st.integers(1, 6))
def test_the_true_value_lies_within_the_slack(value: float, digits: int) -> None:
    number = only(f"{value:.{digits}f}")
    assert abs(number.value - value) <= number.slack * (1 + 1e-6) + 1e-9
