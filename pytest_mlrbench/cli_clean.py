"""``mlrbench clean``: remove what killed runs left in the Docker engine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_mlrbench.errors import InputError, SystemFault

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.reaper import Thing


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of ``mlrbench``."""
    clean = commands.add_parser("clean", help="remove what killed runs left in the Docker engine")
    clean.add_argument("--dry-run", action="store_true", help="say only what would be removed")
    clean.set_defaults(run=_clean)


def _clean(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.sandbox.engine import connect
    from pytest_mlrbench.sandbox.reaper import sweep, things

    client = connect()
    try:
        found = things(client)
        left = [it for it in found if it.is_left] if arguments.dry_run else sweep(client)
    except SystemFault as fault:
        raise InputError(fault.message) from None
    finally:
        client.close()
    done = "would be removed" if arguments.dry_run else "removed"
    for it in left:
        print(f"{done}: {_name(it)}")
    gone = {it.id for it in left}
    for it in found:
        if it.id not in gone:
            print(f"kept, as its owner may be running: {_name(it)}")
    print(f"{len(left)} {done}." if left else "Nothing is left of runs that have ended.")
    return 0


def _name(it: Thing) -> str:
    run = f" of run {it.run}" if it.run else ""
    case = f", case {it.case}" if it.case else ""
    return f"{it.kind} {it.name}{run}{case}"
