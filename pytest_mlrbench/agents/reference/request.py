"""What the agent is asked, and the way it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class AgentError(Exception):
    """The request cannot be answered. *code* becomes the exit code, the message one sentence.

    Codes: 1 the experiment failed, 2 an unknown or incomplete request, 3 a package is missing,
    4 out of time.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Request:
    """One case. *deadline* is a unix time; *repeat* counts from 1 and selects other seeds."""

    task: str
    workspace: Path
    deadline: float | None = None
    repeat: int = 1

    def read(self, name: str) -> str:
        """Return the text of an input file.

        :raises AgentError: it is not there.
        """
        try:
            return (self.workspace / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise AgentError(2, f"the input {name} is missing or cannot be read as text.") from None

    def write(self, name: str, text: str) -> None:
        """Write an output file, with its folder."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
