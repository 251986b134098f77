"""NumPy's files with the rows of their arrays in other places, without NumPy."""

from __future__ import annotations

import ast
import re
import struct
import zipfile
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mlrbench.evidence.replays.corrupting import Way

ARRAYS = (".npy", ".npz")
_MAGIC = b"\x93NUMPY"
#: Kinds of values of a fixed size: how many bytes are in one of what the number counts.
_SIZES = {"U": 4} | dict.fromkeys("biufcSMm", 1)
_LONGEST_HEADER, _MOST_MEMBERS, _MOST_BYTES = 2_000, 1_000, 32_000_000


def changed_arrays(name: str, data: bytes, way: Way) -> bytes | None:
    """Return an array, or an archive of them, with rows in other places; null if none has any.

    :raises ValueError: it is none, or one that is packed in a way nobody uses.
    """
    if name.endswith(".npy"):
        # What it is called is all that says what is in it.
        return _rows(data, way) if way.chosen([PurePosixPath(name).stem]) else None
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(it.file_size for it in members) > _MOST_BYTES or len(members) > _MOST_MEMBERS:
                return None
            contents = {it.filename: archive.read(it) for it in members}
    except (zipfile.BadZipFile, RuntimeError, OSError, EOFError, NotImplementedError) as error:
        raise ValueError from error
    names = list(contents)
    chosen = {names[at] for at in way.chosen([it.removesuffix(".npy") for it in names])}
    changed = {it: new for it in chosen if (new := _rows(contents[it], way)) is not None}
    if not changed:
        return None
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for it, content in (contents | changed).items():
            archive.writestr(zipfile.ZipInfo(it), content)
    return packed.getvalue()


def _rows(data: bytes, way: Way) -> bytes | None:
    if not data.startswith(_MAGIC):
        return None
    letters = "<H" if data[6] == 1 else "<I"
    try:
        (length,) = struct.unpack_from(letters, data, 8)
    except struct.error as error:
        raise ValueError from error
    start = 8 + struct.calcsize(letters) + length
    if length > _LONGEST_HEADER:
        return None
    about = _literal(data[start - length : start])
    kind = re.fullmatch(r"[<>|=]?([a-zA-Z])(\d{1,6})", str(about.get("descr")))
    shape = about.get("shape")
    if not kind or not isinstance(shape, tuple) or not shape:
        return None
    if not isinstance(shape[0], int) or not 1 < shape[0] <= len(data):
        return None
    if kind[1] not in _SIZES or (about.get("fortran_order") and len(shape) > 1):
        return None
    size = (len(data) - start) // shape[0]
    rows = [data[start + at * size : start + (at + 1) * size] for at in range(shape[0])]
    new = way.changed(rows) if size else None
    return None if new is None else data[:start] + b"".join(new)


def _literal(header: bytes) -> dict[str, object]:
    try:
        found = ast.literal_eval(header.decode("latin-1").strip())
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError from error
    return found if isinstance(found, dict) else {}
