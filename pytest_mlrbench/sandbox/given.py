"""Files of this machine that commands are given: whether whoever runs them may use them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.container_options import Account

#: As in the mode of a file.
READ, EXECUTE = 4, 1
#: Rights beside the mode, which may give more than it says.
_LIST = "system.posix_acl_access"


def check_ours(files: Collection[Path]) -> None:
    """Make sure that we can read *files*: what is run depends on what is in them.

    :raises InputError: one of them is closed to us.
    """
    for path in files:
        if not os.access(path, os.R_OK):
            raise InputError(f"{path} cannot be read by this account: `chmod u+r` it.")


def check_given(files: Mapping[Path, int], account: Account | None) -> None:
    """Make sure that commands in containers can use the *files* that they are given.

    :param files: file → the rights that are needed.
    :param account: whom commands run as; null for somebody whom no file of this machine is.
    :raises InputError: one of them is closed to it, as those made under a strict umask are.
    """
    for path, rights in files.items():
        if not _may(path, rights, account):
            letters = "r" * bool(rights & READ) + "x" * bool(rights & EXECUTE)
            raise InputError(
                f"{path} is closed to the account that commands run as in containers, which is not"
                f" its owner's: `chmod a+{letters}` opens it."
            )


def _may(path: Path, rights: int, account: Account | None) -> bool:
    if hasattr(os, "listxattr") and _LIST in os.listxattr(path):
        return True
    about = path.stat()
    place = 0
    if account and account.uid == about.st_uid:
        place = 6
    elif account and account.gid == about.st_gid:
        place = 3
    return about.st_mode >> place & rights == rights
