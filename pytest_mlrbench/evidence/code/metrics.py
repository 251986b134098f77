"""What the name of a value says: that it is a measured result, or a setting of the experiment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pytest_mlrbench.evidence.code.values import listed

#: What is measured, by what is studied: classification, ranking, language, regression, learning,
#: control, vision, speed and memory, clustering, statistics, people.
_MEASURED = listed(
    """
    accuracy acc precision recall f1 fscore specificity sensitivity auc auroc auprc roc mcc map mrr
    ndcg hit hits hr recall@k bleu rouge meteor chrf wer cer perplexity ppl bertscore exact match
    em pass correctness mse rmse mae mape r2 nll elbo likelihood error errors err residual loss
    losses reward rewards return returns regret payoff success win utility iou miou dice psnr ssim
    fid lpips latency throughput speedup runtime time times duration memory flops overhead speed
    usage silhouette purity nmi ari davies bouldin correlation spearman pearson kendall kappa
    pvalue significance ece brier calibration score scores rate metric metrics performance perf
    result results gain gains improvement improvements drop gap reduction quality efficiency
    robustness fairness disparity parity diversity novelty consistency coverage similarity distance
    divergence satisfaction trust agreement retention convergence stability alignment faithfulness
    toxicity bias confidence completeness relevance coherence fluency complexity maintainability
    effectiveness
    """
)
#: What is chosen beforehand, or says how something is drawn.
_CHOSEN = listed(
    """
    lr learning weight weights decay threshold thresholds thresh target targets coef coefficient
    coefficients alpha beta gamma lambda eps epsilon temperature temp dropout seed seeds batch
    hidden layer layers dim dims config configs configuration param params hyperparameters hparams
    parameters args arg settings setting options option budget momentum warmup schedule patience
    tolerance tol limit limits timeout interval figsize fontsize width height color colors noise
    prior priors init initial initialization expected expect default defaults sampling split ratio
    frequency penalty scale margin sleep delay retries clip xlim ylim bins grid range bounds
    probability prob probs step_size sigma scaling optimizer scheduler max_new min_lr test_size
    """
)
#: What everybody works out from the sizes of a model.
_WORKED_OUT = frozenset({"flops", "gflops", "macs", "memory", "kv", "size", "params", "complexity"})
#: Numbers of a report, from which on a single one is not looked for.
_MANY = 3000
_SUMMARIES = frozenset({"mean", "avg", "average", "std", "stderr", "sem", "median", "ci"})
_BORROWED = re.compile(
    r"\b(published|reported (?:by|in)|literature|et al|from (?:the|their) paper|leaderboard|"
    r"prior work|previous work|state[- ]of[- ]the[- ]art|sota|cited?|citation|arxiv)\b",
    re.IGNORECASE,
)
_OWNS_UP = re.compile(
    r"\b(?:simulated|mock|hypothetical|illustrative|placeholder|synthetic|fabricated|projected) "
    r"(?:experiment(?:al)? )?(?:results|metrics|numbers|scores|figures|performance|values)\b"
    r"|\b(?:results|metrics|numbers|scores|figures|values)\b[^.|\n]{0,60}\b(?:are|were|is|was|been)"
    r"[^.|\n]{0,30}\b(?:simulated|mocked|hypothetical|illustrative|placeholders?|synthetic|"
    r"made up|not (?:real|measured|actual))\b",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"(?<![\w.])[-+]?\d{1,15}(?:\.\d{1,15})?(?:[eE][-+]?\d{1,3})?")


@lru_cache(maxsize=20_000)
def words(name: str) -> tuple[str, ...]:
    """Return the words that a name is made of: ``test_taskAccuracy@5`` has four."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name[:120])
    return tuple(w for w in re.split(r"[^a-z0-9]+", spaced.lower()) if w)


def is_measured(name: str) -> bool:
    """Tell whether a name is that of a result."""
    if is_chosen(name):
        return False
    forms = ({word, word.rstrip("0123456789"), word.removesuffix("s")} for word in words(name))
    return any(form & _MEASURED for form in forms)


def is_chosen(name: str) -> bool:
    """Tell whether a name is that of a setting."""
    return any(word in _CHOSEN for word in words(name))


def is_summary(name: str) -> bool:
    """Tell whether a name is that of a statistic, whatever it is of."""
    return any(word in _SUMMARIES for word in words(name))


def is_worked_out(names: Iterable[str]) -> bool:
    """Tell whether any of *names* is that of what follows from the sizes of a model."""
    return any(word in _WORKED_OUT for name in names for word in words(name))


def is_borrowed(text: str) -> bool:
    """Tell whether the text around a number says that others measured it."""
    return _BORROWED.search(text.replace("_", " ")) is not None


def is_own(name: str) -> bool:
    """Tell whether a name is that of the agent's own method, which nobody else has measured."""
    return not {"our", "ours", "proposed"}.isdisjoint(words(name))


def is_telling(value: object) -> bool:
    """Tell whether a typed number has two digits that say something: 0.85, not 0.0 or 100."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return False
    digits = f"{abs(value):.10g}".split("e")[0].replace(".", "").strip("0")
    return len(digits) >= 2 and abs(value) < 1e12


def numerals(text: str) -> list[str]:
    """Return the numbers in a short text."""
    return _NUMERAL.findall(text[:2000])


@dataclass(frozen=True, slots=True)
class Reported:
    """What the tables of a report name and say.

    :param names: of columns and rows.
    :param rows: names of rows.
    :param numbers: as they are printed.
    :param owns_up: whether a report says that its results themselves are no measurements.
    """

    names: frozenset[str] = frozenset()
    rows: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    owns_up: bool = False

    def has_name(self, name: str) -> bool:
        """Tell whether a row or a column is called *name*, more or less."""
        return " ".join(words(name)) in self.names

    def has_row(self, name: str) -> bool:
        """Tell whether a row is called *name*."""
        return " ".join(words(name)) in self.rows

    def has_number(self, value: object) -> bool:
        """Tell whether *value* is printed, to three digits at least."""
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e9:
            return False
        forms = {f"{v:.{d}f}" for v in (value, value * 100) for d in (1, 2, 3, 4)}
        return any(len(form.strip("0.-").replace(".", "")) >= 3 for form in forms & self.numbers)

    def prints(self, value: float) -> bool:
        """Tell whether *value* is printed, rounded or in percent, however few digits that takes.

        Among very many numbers it may be.
        """
        if len(self.numbers) > _MANY:
            return True
        for number in self.numbers:
            slack = 0.5000001 * 10.0 ** -len(number.partition("e")[0].partition(".")[2])
            if any(abs(float(number) - scale * value) <= slack for scale in (1, 100)):
                return True
        return False


def reported(documents: Mapping[str, str]) -> Reported:
    """Return what the tables in *documents* name and say."""
    names: set[str] = set()
    rows: set[str] = set()
    numbers: set[str] = set()
    for text in documents.values():
        for line in text[:400_000].splitlines():
            if not line.lstrip().startswith("|"):
                continue
            cells = [cell.strip(" *`\t") for cell in line.strip()[:2000].strip("|").split("|")]
            for cell in cells:
                found = numerals(cell)
                numbers.update(found)
                if not found and len(cell) < 60 and words(cell):
                    names.add(" ".join(words(cell)))
                    if cell is cells[0] and numerals(line):
                        rows.add(" ".join(words(cell)))
    owns_up = any(_OWNS_UP.search(text[:400_000]) for text in documents.values())
    return Reported(frozenset(names), frozenset(rows), frozenset(numbers), owns_up)
