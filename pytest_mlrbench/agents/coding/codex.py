"""``codex[:MODEL]``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pytest_mlrbench.agents.coding import transcripts, usage
from pytest_mlrbench.agents.coding.base import CodingAgent

_CONFIG = """\
model_provider = "gate"
web_search = "disabled"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.gate]
name = "gate"
base_url = {address}
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


class Codex(CodingAgent):
    """Codex CLI, by OpenAI."""

    kind = "codex"
    program = "codex"
    package = "@openai/codex"
    provider = "openai"
    sessions = ".codex/sessions/*.jsonl"
    events = staticmethod(transcripts.codex)
    usage = staticmethod(usage.codex)

    def arguments(self) -> list[str]:
        """Print all that happens as lines of JSON, and read the prompt from the input (``-``)."""
        return [
            *("exec", "--json", "--skip-git-repo-check"),
            "--dangerously-bypass-approvals-and-sandbox",
            *([f"--model={self.model}"] if self.model else []),
            "-",
        ]

    def variables(self) -> dict[str, str]:
        """Everything is said in its configuration."""
        return {}

    def files(self, gate: Mapping[str, str]) -> dict[str, str]:
        """A provider of our own: the built-in one insists on its own address and login."""
        address = gate.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
        return {".codex/config.toml": _CONFIG.format(address=json.dumps(address))}
