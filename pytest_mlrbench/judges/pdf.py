"""A paper that is a PDF: its text, and pictures of the pages that hold figures."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.pdf_pages import NOT_INSTALLED

#: Cause of a case whose PDF cannot be read for want of a library.
NO_READER = "no_pdf_reader"
#: Bytes of a PDF that is read.
LARGEST = 50_000_000
_SECONDS = 120.0
#: Ends of pages, and hyphens at the ends of lines, as the library spells them.
_ODD = {0x0C: "\n", 0x02: "-", 0xFFFE: "-"}


@dataclass(frozen=True)
class Pdf:
    """What was read of a PDF.

    :param pages: how many it has.
    :param unread: how many of those were not read.
    :param pictures: number of a page → PNG file of it.
    :param more: how many further pages hold figures.
    :param fault: why nothing was read; empty if something was.
    """

    text: str = ""
    pages: int = 0
    unread: int = 0
    pictures: Sequence[tuple[int, bytes]] = ()
    more: int = 0
    fault: str = ""


def read_pdf(path: Path, pictures: int) -> Pdf:
    """Read a PDF, in a process of its own; what cannot be read is a fault of the file.

    :param pictures: how many pages at most are to be drawn.
    :raises SystemFault: the library is not installed.
    """
    no_reader = SystemFault(
        NO_READER,
        f"{path.name} cannot be read without pypdfium2: pip install 'pytest-mlrbench[pdf]'.",
    )
    if find_spec("pypdfium2") is None:
        raise no_reader
    if path.stat().st_size > LARGEST:
        return Pdf(fault=f"has more than {LARGEST:,} bytes")
    program = Path(__file__).with_name("pdf_pages.py")
    command = [sys.executable, "-P", str(program), str(path), str(pictures)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
        if done.returncode == NOT_INSTALLED:
            raise no_reader
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Pdf(fault=f"could not be read within {_SECONDS:.0f} s")
    except ValueError:  # of a process that ended early there is no document
        return Pdf(fault="could not be read as a PDF")
    return Pdf(
        text=found["text"].replace("\r\n", "\n").translate(_ODD),
        pages=found["pages"],
        unread=found["unread"],
        pictures=[(one["page"], base64.b64decode(one["png"])) for one in found["pictures"]],
        more=found["more"],
    )
