"""``gemini-cli[:MODEL]``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_mlrbench.agents.coding import transcripts, usage
from pytest_mlrbench.agents.coding.base import CodingAgent

#: Seconds without output after which a command is ended.
_SILENT = 7200


class GeminiCli(CodingAgent):
    """Gemini CLI, by Google."""

    kind = "gemini-cli"
    program = "gemini"
    package = "@google/gemini-cli"
    provider = "google"
    sessions = ".gemini/tmp/*/chats/*.jsonl"
    events = staticmethod(transcripts.gemini)
    usage = staticmethod(usage.gemini)

    @property
    def models(self) -> Sequence[str]:
        """It asks small models of its own choice beside the one it is told to use."""
        return (self.model, "gemini-*flash*") if self.model else ("*",)

    def arguments(self) -> list[str]:
        """Print all that happens as lines of JSON; an empty prompt lets it read its input."""
        return [
            *("--prompt=", "--output-format=stream-json"),
            *("--yolo", "--skip-trust"),
            *([f"--model={self.model}"] if self.model else []),
        ]

    def variables(self) -> dict[str, str]:
        """Its own sandbox is off, whatever else there is on the machine."""
        return {"GEMINI_SANDBOX": "false"}

    def files(self, gate: Mapping[str, str]) -> dict[str, str]:
        """Commands may be silent for long; a key is all the login there is."""
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "tools": {
                "exclude": ["google_web_search", "web_fetch"],
                "shell": {"inactivityTimeout": _SILENT},
            },
        }
        return {".gemini/settings.json": json.dumps(settings, indent=2)}
