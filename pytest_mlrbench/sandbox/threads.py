"""Work that blocks, done beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread; if cancelled, wait for its end first: nothing is left half done.

    However often it is cancelled: impatient users press Ctrl-C again.

    :raises asyncio.CancelledError: the caller was cancelled meanwhile.
    """
    work = asyncio.get_running_loop().run_in_executor(None, function, *arguments)
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # it is of no interest any more
        raise cancelled
    return work.result()
