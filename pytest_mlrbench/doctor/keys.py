"""Keys in the environment: whether they are set, and never any part of their values."""

from __future__ import annotations

import os
from functools import partial

from pytest_mlrbench.doctor.probe import Probe, Seen

#: Variables of which one is enough → what the key is good for, where this version uses it.
KEYS = {
    ("ANTHROPIC_API_KEY",): "Judges and agents by Anthropic's models need it.",
    ("OPENAI_API_KEY",): "Judges and agents by OpenAI's models need it.",
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"): "Judges and agents by Google's models need it.",
    ("OPENALEX_API_KEY",): "Not required: it raises OpenAlex's limit for --mlr-search=openalex.",
    ("GITHUB_TOKEN",): "Not required: it raises GitHub's rate limit for `mlrbench tasks fetch`.",
    ("HF_TOKEN",): "Not required: it raises Hugging Face's rate limit for `mlrbench tasks fetch`.",
}


def probes() -> list[Probe]:
    """Return one look for each key."""
    return [
        Probe(area="keys", name=names[0], look=partial(_look, names), enables=use, remedy=use)
        for names, use in KEYS.items()
    ]


def environment_without_keys() -> dict[str, str]:
    """Return the environment for tools whose words are repeated to the user."""
    secret = {name for names in KEYS for name in names}
    return {name: value for name, value in os.environ.items() if name not in secret}


def _look(names: tuple[str, ...]) -> Seen:
    # Only whether there is a value leaves these lines: no error below can carry one away.
    blank = {name: not os.environ[name].strip() for name in names if name in os.environ}
    first, *others = names
    for name, is_blank in blank.items():
        if not is_blank:
            return Seen("ok", "set" if name == first else f"set, as {name}")
    if blank:
        name = next(iter(blank))
        return Seen("broken", "set but blank" if name == first else f"{name} is set but blank")
    return Seen("missing", ", nor is ".join(["not set", *others]))
