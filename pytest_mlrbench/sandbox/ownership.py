"""Whose the folders are that an agent writes to, before, during and after its run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.sandbox.container_options import Account

#: Name, in the agent's home, of the file that tells it that its time is nearly over.
DEADLINE = "DEADLINE"


def give(folder: Path, account: Account) -> None:
    """Make *folder* and all that is in it belong to *account*; nothing to do unless we are root.

    Links are given, not what they lead to: an earlier command of the case may have left them.
    """
    if os.getuid() == 0:
        # The program does not run out of stack, and goes deeper than a path can be long.
        command = ["chown", "-hRP", f"{account.uid}:{account.gid}", "--", str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{folder} cannot be given away: {done.stderr.strip()[-300:]}")


def warn(home: Path, seconds: float) -> None:
    """Tell the agent that *seconds* are left, by a file in its home.

    The folder is the agent's, so a link may lie where the file goes: it is replaced, not followed.
    """
    ends = time.strftime("%H:%M:%S UTC", time.gmtime(time.time() + seconds))
    text = f"{seconds:.0f} s are left: at {ends} you are sent SIGTERM, and then ended.\n"
    part = home / f"{DEADLINE}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with contextlib.suppress(OSError):  # it may as well have made a folder of that name
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, flags, 0o644), "w") as file:
            file.write(text)
        part.replace(home / DEADLINE)  # as a whole: the agent may be waiting for it


def remove_home(folder: Path) -> None:
    """Remove an agent's home, whatever permissions it left there and however deep it made it."""
    if not folder.is_symlink():
        folders.remove(folder)
