"""What the gate says when it lets a request not pass, in the words of the provider meant."""

from __future__ import annotations

import json
from typing import Any

from pytest_mlrbench.models.config import Provider

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
}


class Refusal(Exception):
    """A request does not pass.

    :param status: of HTTP.
    :param cause: a short fixed word, for the ledger and for programs.
    :param message: a sentence for a person; it holds no key.
    """

    def __init__(self, status: int, cause: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.cause = cause
        self.message = message

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer; the SDKs of Anthropic and OpenAI ask again unless told not to."""
        passing = self.status in (429, 502)
        return {"x-should-retry": "true" if passing else "false", "x-mlrbench-refused": self.cause}

    def body(self, provider: Provider | None) -> bytes:
        """Return the error as *provider* would write it; null where none is meant."""
        return json.dumps(self._document(provider)).encode()

    def _document(self, provider: Provider | None) -> dict[str, Any]:
        words = f"mlrbench: {self.message}"
        if provider == "anthropic":
            kind = _ANTHROPIC.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": words}}
        if provider == "google":
            status = _GOOGLE.get(self.status, "INTERNAL")
            return {"error": {"code": self.status, "message": words, "status": status}}
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": words, "type": kind, "param": None, "code": self.cause}
        return {"error": error}
