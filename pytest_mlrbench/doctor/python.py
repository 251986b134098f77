"""Python and the packages in it, found without importing them."""

from __future__ import annotations

import importlib.util
import platform
import re
from importlib import metadata
from typing import NamedTuple

from pytest_mlrbench.doctor.probe import Probe, Seen

MINIMUM = "3.11"


class Package(NamedTuple):
    """A package by the name it is installed by, and by the name it is imported by.

    *minimum* is the oldest version that is supported, if there is one.
    """

    name: str
    module: str
    minimum: str
    use: str


#: The embedded default runs with all of these; a test compares the versions with pyproject.toml.
REQUIRED = (
    Package("pytest", "pytest", "8.4", "Every case is a test."),
    Package("pytest-xdist", "xdist", "3.6", "Runs cases side by side: `pytest -n 4`."),
    Package("pydantic", "pydantic", "2.7", "Reads and writes what is kept of a run."),
    Package("platformdirs", "platformdirs", "4.2", "Finds the cache of fetched texts."),
    Package("psutil", "psutil", "5.9", "Ends what an agent leaves running."),
    Package("PyYAML", "yaml", "6.0", "Reads suites and rubrics."),
)
REFERENCE = (
    Package("scikit-learn", "sklearn", "1.4", "The agent 'reference' trains models with it."),
    Package("matplotlib", "matplotlib", "3.8", "The agent 'reference' draws figures with it."),
)
FETCH = (
    Package("httpx", "httpx", "0.27", "`mlrbench tasks fetch` downloads with it."),
    Package("tenacity", "tenacity", "8.3", "`mlrbench tasks fetch` tries again with it."),
    Package("tqdm", "tqdm", "4.66", "`mlrbench tasks fetch` shows its progress with it."),
)
HUGGINGFACE = (
    Package("huggingface_hub", "huggingface_hub", "0.26", "Fetches texts from Hugging Face."),
    Package("pyarrow", "pyarrow", "15", "Reads the texts that come from Hugging Face."),
)
MODELS = (
    Package("anthropic", "anthropic", "2", "Judges and agents by Anthropic's models."),
    Package(
        "openai", "openai", "3", "Judges and agents by OpenAI's models, and compatible servers'."
    ),
    Package("google-genai", "google.genai", "3", "Judges and agents by Google's models."),
    Package("genai-prices", "genai_prices", "0.2", "What calls to models cost."),
    Package("pypdfium2", "pypdfium2", "4.30", "Shows judges papers that are PDFs."),
)
CONTAINERS = (
    Package("docker", "docker", "7", "Runs agents in containers."),
    Package("aiohttp", "aiohttp", "3.13.3", "What agents in containers reach models through."),
    Package("nvidia-ml-py", "pynvml", "12", "Finds the GPUs that cases are lent."),
)
OPTIONAL = (
    Package("pytest-asyncio", "pytest_asyncio", "", "Async fixtures of your own."),
    Package("scipy", "scipy", "1.15", "`mlrbench agreement` computes with it."),
    Package("krippendorff", "krippendorff", "0.8", "`mlrbench agreement` computes with it."),
    Package("pandas", "pandas", "2", "`pytest_mlrbench.to_frame` makes data frames of scores."),
)


def probes() -> list[Probe]:
    """Return the looks at Python, at what is required and at what is optional."""
    here = [
        Probe(
            area="python",
            name="Python",
            look=_look_at_python,
            enables=f"pytest-mlrbench runs on {MINIMUM} or newer.",
            remedy=f"Make a virtual environment with Python {MINIMUM} or newer.",
            needed=True,
        ),
        Probe(
            area="python",
            name="system",
            look=_look_at_system,
            enables="Linux and macOS are supported.",
            remedy="Use Linux or macOS; on Windows, use WSL.",
            needed=True,
        ),
    ]
    return [
        *here,
        *(_probe(package, "python", needed=True) for package in REQUIRED),
        *(_probe(package, "reference", needed=True) for package in REFERENCE),
        *(_probe(package, "fetch", needed=False) for package in FETCH),
        *(_probe(package, "huggingface", needed=False) for package in HUGGINGFACE),
        *(_probe(package, "models", needed=False) for package in MODELS),
        *(_probe(package, "docker", needed=False) for package in CONTAINERS),
        *(_probe(package, "optional", needed=False) for package in OPTIONAL),
    ]


def _probe(package: Package, area: str, *, needed: bool) -> Probe:
    return Probe(
        area=area,
        name=package.name,
        look=lambda: _look_at(package),
        enables=package.use,
        remedy=_remedy(package),
        needed=needed,
    )


def _remedy(package: Package, option: str = "") -> str:
    wanted = f"'{package.name}>={package.minimum}'" if package.minimum else package.name
    return f"{package.use} To get it: `pip install {option}{wanted}`.".strip()


def _look_at_python() -> Seen:
    version = platform.python_version()
    if _release(version) < _release(MINIMUM):
        return Seen("broken", f"{version} is older than {MINIMUM}")
    return Seen("ok", version)


def _look_at_system() -> Seen:
    name = platform.system() or "unknown"
    detail = f"{name} {platform.release()} {platform.machine()}"
    return Seen("broken" if name == "Windows" else "ok", detail)


def _look_at(package: Package) -> Seen:
    there = _is_found(package.module)
    try:
        version = metadata.version(package.name)
    except metadata.PackageNotFoundError:
        # As from a checkout on the import path: usable, though of no known version.
        return Seen("ok", "found, version unknown") if there else Seen("missing", "not installed")
    if not there:
        return Seen(
            "broken",
            f"{version} is said to be installed, but there is no {package.module}",
            # pip believes what is said as well, and would do nothing.
            _remedy(package, "--force-reinstall "),
        )
    if package.minimum and _release(version) < _release(package.minimum):
        return Seen("broken", f"{version} is older than {package.minimum}")
    return Seen("ok", version)


def _is_found(module: str) -> bool:
    """Whether *module* can be imported; only the packages it lies in are."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    # A mere folder of that name, as beside a user's Dockerfile, has a spec too, but no origin.
    return spec is not None and spec.origin is not None


def _release(version: str) -> tuple[int, ...]:
    """``8.4.0rc1`` → (8, 4, 0)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()
