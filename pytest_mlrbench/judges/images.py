"""Pictures as providers take them: known by their bytes, whole, and not too large.

One picture that a provider refuses would cost the whole review, so that an author could prevent
being judged by leaving a broken one. What is not fit to be sent is left out, and that is said.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from pytest_mlrbench.models.exchange import Image

#: Bytes; Anthropic takes 5 MiB of base64, which is 4/3 of it.
LARGEST = 3_750_000
#: Pixels of a side; Anthropic refuses more.
LONGEST_SIDE = 8000
_MOST_PIXELS = 50_000_000
_CHUNK = 1 << 20
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


class UnfitImageError(ValueError):
    """Why a picture cannot be shown, as the end of a sentence about it."""


def to_image(data: bytes) -> Image:
    """Return the picture in *data*.

    :raises UnfitImageError: it is none, is damaged, or is too large.
    """
    media_type, measure = _kind(data)
    if len(data) > LARGEST:
        raise UnfitImageError(f"has {len(data):,} bytes, and at most {LARGEST:,} are shown")
    try:
        _check_size(*measure(data))
    except (IndexError, struct.error, zlib.error, ValueError) as error:
        if isinstance(error, UnfitImageError):
            raise
        raise UnfitImageError("is damaged") from None
    return Image(data, media_type)


def _kind(data: bytes) -> tuple[str, Callable[[bytes], tuple[int, int]]]:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png", _png
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", _jpeg
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif", _gif
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp", _webp
    raise UnfitImageError("is no PNG, JPEG, WebP or GIF picture")


def _check_size(width: int, height: int) -> None:
    if max(width, height) > LONGEST_SIDE or width * height > _MOST_PIXELS:
        raise UnfitImageError(f"is {width} by {height} pixels large, which is too much")
    if min(width, height) < 1:
        raise ValueError("there is no pixel in it")


def _png(data: bytes) -> tuple[int, int]:
    place, packed, header = 8, bytearray(), b""
    kinds: list[bytes] = []
    while place < len(data) and kinds[-1:] != [b"IEND"]:
        (length,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (crc,) = struct.unpack_from(">I", data, place + 8 + length)
        if zlib.crc32(kind + content) != crc:
            raise ValueError("a part of it does not fit its checksum")
        kinds.append(kind)
        if kind == b"IHDR":
            header = content
        elif kind == b"IDAT":
            packed += content
        place += 12 + length
    if kinds[:1] != [b"IHDR"] or kinds[-1:] != [b"IEND"]:
        raise ValueError("it has no beginning or no end")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    _check_size(width, height)
    wanted = height * (1 + (width * depth * _CHANNELS.get(colour, 4) + 7) // 8)
    # Interlaced rows come in seven passes, each of which begins its rows anew.
    if not wanted <= _unpacked(bytes(packed), wanted * (2 if interlaced else 1)):
        raise ValueError("pixels are missing")
    return width, height


def _unpacked(packed: bytes, most: int) -> int:
    """How many bytes *packed* unpacks to, looked at piece by piece: it may be a bomb."""
    unpacking, total = zlib.decompressobj(), 0
    while not unpacking.eof:
        piece = unpacking.decompress(packed, _CHUNK)
        packed = unpacking.unconsumed_tail
        total += len(piece)
        if total > most + _CHUNK or not (piece or packed):
            raise ValueError("it unpacks to more or less than its pixels")
    return total


def _jpeg(data: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in data[-4096:]:
        raise ValueError("its end is missing")
    place = 2
    while True:
        marker, length = struct.unpack_from(">xBH", data, place)
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        if data[place] != 0xFF or marker == 0xDA:
            raise ValueError("it says no size")
        place += 2 + length


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    if b";" not in data[-16:]:
        raise ValueError("its end is missing")
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise ValueError("its end is missing")
    kind = data[12:16]
    if kind == b"VP8X":
        return (
            1 + int.from_bytes(data[24:27], "little"),
            1 + int.from_bytes(data[27:30], "little"),
        )
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
