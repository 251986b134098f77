"""Tells what was chosen for an experiment from what came out of it: settings are no results."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_mlrbench.evidence.reports.report_tables import Table

_GREEK = (
    r"\\?(?:alpha|beta|gamma|lambda|tau|eta|(?:var)?epsilon|mu|sigma|theta|kappa)|[αβγλτηεμσθκϵ]"
)
_NAMES = (
    r"learning[ _-]?rates?|(?<![a-z])lr|weight[ _-]?decay|drop[ _-]?out|temperature"
    r"|batch[ _-]?sizes?"
    r"|momentum|warm[ _-]?up(?:[ _](?:ratio|steps))?|(?<!\w)seeds?|optimi[sz]er|thresholds?"
    r"|cut-?offs?"
    r"|discount(?:[ _-]factor)?|top[ _-][kp]|clip(?:ping)?(?:[ _](?:range|norm))?|penalty"
    r"|(?:noise|sparsity|confidence|significance|compression|corruption|privacy|pruning"
    r"|masking)[ _-]?(?:level|std|scale|strength|budget)s?"
    r"|(?:regulari[sz]ation|entropy|loss|kl|mixing|contrastive|coverage|reward)[ _-](?:weight"
    r"|coefficient|coef|strength)"
    r"|margin|hidden[ _-](?:size|dim\w{0,8}|units)|embedding[ _-]dim\w{0,8}|(?<!\w)epsilon"
    r"|(?<!\w)eps|hyper-?param\w{0,8}"
    r"|(?:train|test|validation|data|held-?out)[ _-](?:split|fraction|ratio|share|size)s?"
    r"|step[ _-]size|tolerance|patience"
    r"|with[ _]probability|(?:sampling|mutation|crossover|update|decay"
    r"|mask(?:ing)?)[ _-](?:rate|probability|factor)"
    r"|(?:lora|adapter)[ _-](?:rank|alpha|r)"
)
#: A column or row of such a name counts or names, whatever stands beside it.
_COUNTS = (
    r"|epochs?|iterations?|(?:training |num(?:ber)?[ _](?:of )?)?steps?|rounds?|budgets?"
    r"|folds?|k|n|ranks?|layers?|heads?"
    r"|(?:#|no\.|num(?:ber)?[ _]|n[ _])[ _]?(?:of )?[a-z _]{2,30}"
    r"|(?:max(?:imum)?[ _-])?(?:sequence[ _-]|context[ _-])?length|(?:training "
    r"|test )?(?:samples?|examples?|size)"
    r"|noise|dim(?:ension)?s?|bits?|ratio|fraction|years?|id|index|rank"
)
_LABEL = re.compile(
    rf"\W{{0,3}}(?:{_NAMES}{_COUNTS}|{_GREEK})(?:\W{{0,3}}(?:\([^()]{{0,30}}\)|{_GREEK}|rate"
    rf"|value))?\W{{0,3}}",
    re.I,
)
#: What is measured; a name that has such a word is no setting.
_METRIC = re.compile(
    r"\bacc(?:uracy)?\b|\bf1|precision|recall|\bau(?:c|roc|prc)|bleu|rouge|\bloss\b|error"
    r"|score|reward|return|perplexity|\bppl\b"
    r"|\br?mse\b|\bmae\b|\br2\b|\btimes?\b|latency|throughput|speed|memory|improve|gain"
    r"|reduction|pass@|pass rate|success|\bmap\b|ndcg|\bmrr\b"
    r"|similarity|correlation|fidelity|distance|quality|efficien|robust|calibration|\bece\b"
    r"|\bnll\b|\bkl\b|\bfid\b|win[ -]rate|(?:error|hit|success|acceptance|failure) rate"
    r"|alignment|trust|satisf|adapt|cost|p-value|\bmean\b|average|\bavg\b|performance"
    r"|overhead|utili[sz]ation|usage|silhouette",
    re.I,
)
_OF_SETTINGS = re.compile(
    r"param(?!eters? count)|setting|config|argument|option|attribute|property|component", re.I
)
_CAPTION = re.compile(
    r"hyper-?param|settings|configuration|data ?set (?:statistics|details|summary)|statistics of",
    re.I,
)

#: What may stand between the name of a setting and its value.
_LINKS = frozenset((
    "of", "to", "at", "is", "was", "were", "are", "set", "as", "with", "equal", "equals", "fixed",
    "be", "a", "the", "rate", "value", "values", "factor", "coefficient", "probability", "and",
    "or", "from", "by", "tau", "alpha", "beta", "gamma", "lambda", "eta", "sigma", "mu",
))  # fmt: skip
_CHOSEN = frozenset((
    "lr", "dropout", "temperature", "momentum", "warmup", "seed", "seeds", "threshold",
    "thresholds", "cutoff", "cutoffs", "penalty", "margin", "epsilon", "eps", "tolerance",
    "patience", "clipping", "hyperparameter", "hyperparameters", "discount", "alpha", "beta",
    "gamma", "lambda", "tau", "eta", "theta", "betas",
    "learning rate", "learning rates", "weight decay", "batch size", "batch sizes", "top p",
    "top k", "drop out", "warm up", "warmup ratio", "discount factor", "noise level",
    "noise std", "noise scale", "sparsity level", "confidence level", "significance level",
    "compression level", "privacy budget", "pruning level", "entropy coefficient", "step size",
    "entropy weight", "loss weight", "regularization weight", "regularization coefficient",
    "regularization strength", "reward weight", "mixing weight", "contrastive weight",
    "kl coefficient", "test split", "train split", "validation split", "data split",
    "test size", "train fraction", "test fraction", "validation fraction", "clip range",
    "clip norm", "gradient clipping", "sampling rate", "mutation rate", "crossover rate",
    "decay rate", "decay factor", "update rate", "mask probability", "masking rate",
    "masking probability", "with probability", "lora alpha", "lora rank", "imitation weight",
))  # fmt: skip
_WORD = re.compile(r"[a-z]+|[,;|]")
_SYMBOL = re.compile(
    rf"(?:{_GREEK}|(?<![\w.])[a-zA-Z])(?:_\w|_\{{[^{{}}]{{0,20}}\}})?[\s$]{{0,3}}(?:=|\\in|∈"
    rf"|:=|\\leftarrow)[\s$]{{0,3}}$"
)
#: Single letters for statistics, which are measured.
_STATISTIC = re.compile(r"(?<![\w\\])[prRtFdzZHUWD](?:_\w|_\{[^{}]{0,20}\})?[\s$]{0,3}=[\s$]{0,3}$")
_AFTER = re.compile(
    r"[\s*$)}]{0,4}(?:-?(?:confidence|CIs?\b|credible|significance|quantile|percentile|train"
    r"|test|validation|split|sparsity|dropout|subset|hold-?out)"
    r"|of (?:the |all |our |each |available )?(?:training |test |validation |labell?ed "
    r"|original |full )?(?:data|samples|examples|data ?sets?|labels|layers|set|corpus|weights"
    r"|neurons)\b)",
    re.I,
)
_DRAWN = re.compile(
    r"(?:mathcal\{?[UN]\}?|Uniform|Normal|Beta|Bernoulli|Dirichlet"
    r"|[UN])\s?\(\s?(?:[-\d.]{1,8},\s?)?$"
)
_REACH = 60


@lru_cache(1000)
def is_metric(name: str) -> bool:
    """Tell whether a column or row of that *name* holds what was measured."""
    return bool(_METRIC.search(name.replace("_", " ")))


@lru_cache(1000)
def is_setting(name: str) -> bool:
    """Tell whether a column or row of that *name* holds what was chosen."""
    return not is_metric(name) and bool(_LABEL.fullmatch(name.strip()))


def is_settings_table(table: Table) -> bool:
    """Tell whether *table* holds settings, or the sizes of data sets, and no results."""
    if any(map(is_metric, table.header[1:])):
        return False
    labels = [row[0].plain for row in table.rows if row]
    if 2 * sum(map(is_metric, labels)) >= len(labels) > 0:
        return False
    return (
        table.kind == "settings"
        or bool(_OF_SETTINGS.search(table.column(0)))
        or bool(_CAPTION.search(table.around))
        or 2 * sum(map(is_setting, labels)) > len(labels)
    )


def is_chosen(text: str, sentence: int, start: int, end: int) -> bool:
    """Tell whether the number at *start* … *end* of *text* is said to have been chosen.

    :param sentence: where its sentence begins.
    """
    before = text[max(sentence, start - _REACH) : start]
    bare = before.rstrip(" $")
    return bool(
        _AFTER.match(text, end)
        or _is_called_chosen(before.lower())
        or (
            bare.endswith(("=", "∈", "\\in", "\\leftarrow"))
            and _SYMBOL.search(before)
            and not _STATISTIC.search(before)
        )
        or (bare.endswith(("(", ",")) and _DRAWN.search(before))
    )


def _is_called_chosen(before: str) -> bool:
    """Tell whether *before* ends with the name of a setting, and no more than "was set to"."""
    words = _WORD.findall(before)
    for place in range(len(words), max(0, len(words) - 8), -1):
        if words[place - 1] in _CHOSEN or " ".join(words[max(0, place - 2) : place]) in _CHOSEN:
            return True
        if words[place - 1] not in _LINKS:
            return False
    return False
