"""The options that are ini keys too."""

from __future__ import annotations

#: Options that are also ini keys (``--mlr-suite`` → ``mlr_suite``): name, ini type, help.
BOTH = (
    ("suite", "string", "suite of tasks: mini, mlrbench-10, mlrbench, or path:DIR (default: mini)"),
    ("tasks", "args", "task ids or globs, separated by commas"),
    ("category", "args", "only tasks of these categories, separated by commas"),
    ("conference", "args", "only tasks of these conferences: iclr, icml, neurips"),
    ("year", "args", "only tasks of these years"),
    ("distinct", "bool", "of tasks with nearly the same text take only the first"),
    ("limit", "int", "only the first N of the chosen tasks"),
    ("sample", "int", "only N of the chosen tasks, drawn at random"),
    ("seed", "int", "seed of --mlr-sample (default: 0)"),
    ("stratify", "string", "keep the shares of category, conference or year in a sample or limit"),
    ("tasks-dir", "string", "a checkout of the published repository, in place of what was fetched"),
    ("repeats", "int", "how often each task is answered (default: 1)"),
    ("agent", "string", "who answers (default: reference)"),
    ("agent-version", "string", "a version of the agent, to be recorded and compared on resume"),
    ("coder", "string", "who runs the experiments of a scaffold agent, as cmd:COMMAND"),
    (
        "search",
        "string",
        "where a scaffold agent looks for literature: openalex (default: nowhere)",
    ),
    ("judge", "linelist", "[NAME=]SPEC of a judge; repeat for a panel (default: checklist)"),
    ("threshold", "linelist", "[stage:]NAME OP NUMBER; repeat for several (default: overall>=6.0)"),
    ("out", "string", "folder of the run folders (default: .mlrbench/runs)"),
    ("timeout", "string", "time an agent has for a case, as 90, 90s, 15m or 8h"),
    ("sandbox", "string", "where commands run: docker, local, or auto (default: auto)"),
    ("image", "string", "image of the containers (default: mlrbench-agents)"),
    ("gpus", "string", "GPUs to use: how many, 0 for none, or indices or UUIDs (default: all)"),
    ("network", "string", "what containers reach: none, models, full (default: by the agent)"),
    ("allow-host", "linelist", "host containers reach beside models, as HOST[:PORT]; repeatable"),
    ("data", "linelist", "DIR[:NAME] that containers read as /data/NAME; repeat for several"),
    ("limits", "args", "of a case: memory=16g cpus=4 pids=4096 shm=2g tmp=2g disk=50g log=100m"),
    ("agent-max-cost", "float", "most US dollars an agent may spend on models in one case"),
    ("model", "linelist", "PROVIDER:MODEL key=value …, e.g. base_url=…; repeat for several"),
    ("hallucination", "bool", "have live judges also look for made-up citations, results, …"),
    (
        "checkpoints",
        "string",
        "score the stages within end_to_end too: on (default), off",
    ),
    (
        "crossing",
        "string",
        "results without evidence that come into a chain's paper: all (default), evidence (none)",
    ),
    ("resolve", "bool", "ask arXiv, Crossref and OpenAlex whether the works that are cited exist"),
    ("replay", "bool", "run experiments again as they declare, also with other seed and input"),
    ("judge-sees-evidence", "bool", "show live judges what was found out about the results"),
    ("concurrency", "int", "how many cases are under way at once in one process"),
    ("max-cost", "float", "most US dollars the run may spend on models"),
    ("max-tokens", "int", "most tokens the run may use, of prompts and answers"),
    ("rubrics", "string", "folder with rubrics of your own, used in place of those shipped"),
)
REPEATABLE = ("judge", "threshold", "model", "allow-host", "data", "limits")
WORDS = ("tasks", "category", "conference", "year")
NUMBERS = {"int": int, "float": float}
LISTS = (*WORDS, *REPEATABLE)
