"""``claude-code[:MODEL]``."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mlrbench.agents.coding import transcripts, usage
from pytest_mlrbench.agents.coding.base import CodingAgent

#: Milliseconds that a command may take if the agent does not ask for more, and if it does.
_USUAL, _LONGEST = 1_800_000, 86_400_000


class ClaudeCode(CodingAgent):
    """Claude Code, by Anthropic. As root it refuses to work without confirmations."""

    kind = "claude-code"
    program = "claude"
    package = "@anthropic-ai/claude-code"
    provider = "anthropic"
    sessions = ".claude/projects/*.jsonl"
    events = staticmethod(transcripts.claude)
    usage = staticmethod(usage.claude)

    def arguments(self) -> list[str]:
        """Print all that happens as lines of JSON."""
        return [
            *("--print", "--output-format=stream-json", "--verbose"),
            "--dangerously-skip-permissions",
            "--disallowedTools=WebSearch,WebFetch",
            *([f"--model={self.model}"] if self.model else []),
        ]

    def variables(self) -> dict[str, str]:
        """Commands may take hours; nobody but the model is asked; small jobs go to it too."""
        small = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL")
        return {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "BASH_DEFAULT_TIMEOUT_MS": str(_USUAL),
            "BASH_MAX_TIMEOUT_MS": str(_LONGEST),
            **(dict.fromkeys(small, self.model) if self.model else {}),
        }

    def files(self, gate: Mapping[str, str]) -> dict[str, str]:
        """Everything is said by options and variables."""
        return {}
