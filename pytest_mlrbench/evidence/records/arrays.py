"""Numbers of NumPy's files, read without NumPy: no pickle can run, and no zip bomb can go off."""

from __future__ import annotations

import ast
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import islice

_MAGIC = b"\x93NUMPY"
#: Kinds of numbers, as NumPy and as ``struct`` write them.
_KINDS = {f"f{size}": code for size, code in ((2, "e"), (4, "f"), (8, "d"))}
_KINDS |= {f"i{size}": code for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))}
_KINDS |= {f"u{size}": code for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))}
#: What a header that is none makes the reading of it raise; ``ValueError`` stands for Unicode too.
_ODD: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, LookupError, AttributeError, SyntaxError, ArithmeticError),
    *(RecursionError, MemoryError, struct.error),
)
#: A broken or encrypted archive, or one packed in a way this Python does not know.
_BROKEN: tuple[type[Exception], ...] = (
    *_ODD,
    OSError,
    RuntimeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)
_LONGEST_HEADER = 2_000
_MOST_MEMBERS = 100
_MOST_BYTES = 4_000_000


def numbers_of_array(data: bytes, key: str = "") -> Iterator[tuple[float, str]]:
    """Yield the finite numbers of an ``.npy`` file, each with a JSON pointer; none if it is odd."""
    try:
        shape, letters, start = _header(data)
        size = struct.calcsize(letters)
        end = start + (len(data) - start) // size * size
        for place, (value,) in enumerate(struct.iter_unpack(letters, data[start:end])):
            if math.isfinite(value):
                yield float(value), key + _pointer(place, shape)
    except _ODD:
        return


def numbers_of_archive(data: bytes) -> Iterator[tuple[float, str]]:
    """Yield the finite numbers of an ``.npz`` file: of each array a bounded part is unpacked."""
    left = _MOST_BYTES
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for member in islice(archive.infolist(), _MOST_MEMBERS):
                with archive.open(member) as file:
                    content = file.read(left)
                left -= len(content)
                yield from numbers_of_array(content, f"/{member.filename.removesuffix('.npy')}")
                if left <= 0:
                    return
    except _BROKEN:
        return


def _header(data: bytes) -> tuple[tuple[int, ...], str, int]:
    """Return shape, kind as ``struct`` writes it, and where the numbers begin."""
    if not data.startswith(_MAGIC):
        raise ValueError
    letters = "<H" if data[6] == 1 else "<I"
    start = 8 + struct.calcsize(letters)
    (length,) = struct.unpack_from(letters, data, 8)
    if length > _LONGEST_HEADER:
        raise ValueError
    header = ast.literal_eval(data[start : start + length].decode("latin-1").strip())
    order, kind = header["descr"][0], header["descr"][1:]
    shape = tuple(map(int, header["shape"]))
    if header["fortran_order"] and len(shape) > 1:
        shape = ()  # the numbers are right, their places would not be
    return shape, (">" if order == ">" else "<") + _KINDS[kind], start + length


def _pointer(place: int, shape: tuple[int, ...]) -> str:
    """Return the indices of the number at *place* of the flat array."""
    indices = []
    for size in reversed(shape[1:]):
        place, index = divmod(place, size)
        indices.append(index)
    return "".join(f"/{index}" for index in (place, *reversed(indices)))
