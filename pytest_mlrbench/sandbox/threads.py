"""Work that blocks, done beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread; if cancelled, wait for its end first: nothing is left half done.

    :raises asyncio.CancelledError: the caller was cancelled meanwhile.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # it is of no interest any more
        raise
