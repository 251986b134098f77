"""What a recorded program does with data, as far as its command line says."""

from __future__ import annotations

import re

from pytest_mlrbench.evidence.ledgers.view import Process, Program

#: They write what stands in their text, or have other programs write.
_SHELLS = re.compile(r"(?:ba|da|z|k|a|fi)?sh$")
#: They pass on what they are given, or what stands on their command line, and measure nothing.
_PASSING = re.compile(
    r"(?:cat|cp|mv|tee|sed|head|tail|[ef]?grep|sort|uniq|cut|tr|printf|echo|install|dd|base64|xxd|ln"
    r"|paste|column|nl|tac|rev|fold|rsync|split|csplit|iconv|date|sleep|mkdir|rm|ls|pwd|true|false"
    r"|uname|hostname|whoami|id|wc|find|which)$"
)
#: They open files for writing and leave what is in them.
_KEEPING = re.compile(r"(?:touch|chmod|chown|flock|sync|test)$")
_INTERPRETERS = re.compile(r"(?:python|pypy|node|nodejs|ruby|perl|php|lua|julia|rscript|r)[\d.]*$")
#: Files that programs are made of, and their paperwork: no data, whatever numbers stand in them.
_CODE = re.compile(
    r"\.(?:pyc?|pyi|pyx|ipynb|sh|bash|js|mjs|cjs|ts|r|jl|pl|rb|lua|java|go|rs|c|cc|cpp|cu|h|hpp|so"
    r"|toml|cfg|ini|lock|css|gitignore)(?:\.[\d.]+)?$"
    r"|(?:^|/)(?:Makefile|Dockerfile|requirements[\w.-]*\.txt|\.git/.+|\.[^/]*rc)$",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(?:md|rst|tex|bib|sty|cls|html)$", re.IGNORECASE)
#: What packages bring for themselves: looks, letters, certificates, time zones, forms, kernels.
_SETTINGS = re.compile(
    r"\.(?:ttf|otf|afm|pfb|woff2?|mplstyle|pem|crt|typed|ya?ml|xml|xsd|svg|mo|po|pot|tmpl|jinja2?"
    r"|template|cl|ptx|cubin|cmake|exe|dll|a|pth|tcl|map)$"
    r"|/(?:mpl-data(?!/sample_data)|zoneinfo|tzdata|pytz|schemas?|templates?|package_data|locale"
    r"|certifi|vendor|licenses?|[^/]+\.(?:dist|egg)-info)(?:/|$)|matplotlibrc|/LICENSE|/VERSION",
    re.IGNORECASE,
)

#: Classes of files that came with packages.
PACKAGES = ("package", "installed")
#: Where programs lie that came with the machine.
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib")
#: Packages that fit or run models: who loads one may have computed in earnest.
LEARNERS = re.compile(
    r"(?:sklearn|torch|tensorflow|keras|jax|flax|xgboost|lightgbm|catboost|transformers|statsmodels"
    r"|stable_baselines3|gym|gymnasium|pymc|mujoco)$"
)


def name_of(program: Program) -> str:
    """The name of what is executed, without folder; of a shell script, ``sh``."""
    name = (program.exe or (program.argv or ("",))[0]).rpartition("/")[2].lower()
    return "sh" if name.endswith((".sh", ".bash")) else name


def is_shell(program: Program | None) -> bool:
    """Whether it is a shell."""
    return _is(_SHELLS, program)


def is_passing(program: Program | None) -> bool:
    """Whether it passes on what it reads, or what it is told to write."""
    return _is(_PASSING, program)


def is_keeping(program: Program | None) -> bool:
    """Whether it opens files to write and leaves what is in them."""
    return _is(_KEEPING, program)


def is_interpreter(program: Program | None) -> bool:
    """Whether it executes programs that are texts."""
    return _is(_INTERPRETERS, program)


def computes(process: Process) -> bool:
    """Whether a process executed a text, or what was made or brought for the case.

    Not what a coding CLI looks around with, as git: that computes nothing of the case.
    """
    program = process.programs[-1] if process.programs else None
    if program is None or is_shell(program) or is_passing(program) or is_keeping(program):
        return False
    is_own = not program.exe.startswith(_SYSTEM) or bool(process.packages)
    reads = (read.path for read in process.reads if read.kind == "own")
    return is_own or is_interpreter(program) or any(path.endswith(".py") for path in reads)


def is_code(path: str) -> bool:
    """Whether a file is a program or part of one, by its name."""
    return _CODE.search(path) is not None


def is_document(path: str) -> bool:
    """Whether a file is a report, or another text to be read, by its name."""
    return _DOCUMENT.search(path) is not None


def is_setting(path: str) -> bool:
    """Whether a file of a package is there for the package itself, not for who uses it."""
    return _SETTINGS.search(path) is not None or is_code(path) or is_document(path)


def _is(names: re.Pattern[str], program: Program | None) -> bool:
    return program is not None and names.match(name_of(program)) is not None
