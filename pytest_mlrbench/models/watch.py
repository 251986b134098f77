"""Keeps an eye on the requests of one call: which of them may have to be paid for."""

from __future__ import annotations

from typing import Any

from pytest_mlrbench.models.adapter import Adapter, Call, Raw
from pytest_mlrbench.models.exchange import Answer, Prompt, Request

#: By name, as in ``faults``: the HTTP libraries' own errors for a connection that never was.
_NO_CONNECTION = {
    *("ConnectError", "ConnectTimeout", "ClientConnectorError"),
    *("ConnectionRefusedError", "gaierror"),
}


class Watch:
    """An :class:`~pytest_mlrbench.models.adapter.Adapter` that counts what becomes of requests."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        #: Requests that were sent and not answered: timed out, cut off, or cancelled.
        self.silent = 0

    def build(self, prompt: Prompt, wanted: Request) -> Call:
        """Put the request into the SDK's words."""
        return self._adapter.build(prompt, wanted)

    async def send(self, arguments: dict[str, Any]) -> Raw:
        """Return the HTTP answer."""
        try:
            return await self._adapter.send(arguments)
        except BaseException as error:
            self.silent += _may_have_arrived(error)
            raise

    def read(self, document: Any) -> Answer:
        """Return the answer in a JSON document."""
        return self._adapter.read(document)

    async def close(self) -> None:
        """Close the connections."""
        await self._adapter.close()


def _may_have_arrived(error: BaseException) -> bool:
    found: BaseException | None = error
    while found is not None:
        if {kind.__name__ for kind in type(found).__mro__} & _NO_CONNECTION:
            return False
        found = found.__cause__ or found.__context__
    return True
