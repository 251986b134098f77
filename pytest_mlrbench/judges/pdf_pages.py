"""Read a PDF: ``python -P pdf_pages.py FILE PAGES``, which prints one JSON document.

It is run as a program of its own, because PDFs are read by a C++ library that a hostile file may
crash, hang or fill the memory of; this file imports nothing of the project.
"""

from __future__ import annotations

import base64
import json
import resource
import struct
import sys
import zlib
from importlib import import_module
from typing import Any

#: Bytes and seconds after which the system ends the reading.
_MEMORY, _SECONDS = 4 << 30, 60
#: Exit status where the library is not usable, which is no fault of the file.
NOT_INSTALLED = 3
#: Pages that are read; no paper has more.
_PAGES = 100
#: Pixels of a page's longer side: small print can still be read.
_SIDE = 1400
#: Lines and curves that make a figure; a page of text has a few, for rules and underlines.
_CURVES = 20
_PATH, _IMAGE, _SHADING, _FORM = 2, 3, 4, 5


def png(width: int, height: int, rgb: bytes, stride: int | None = None) -> bytes:
    """Return the PNG file of a picture; a row of *rgb* has *stride* bytes."""
    stride = stride or 3 * width
    rows = b"".join(b"\0" + rgb[y * stride : y * stride + 3 * width] for y in range(height))

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _has_figure(page: Any) -> bool:
    curves = 0
    for found in page.get_objects(max_depth=3):
        curves += found.type in (_PATH, _SHADING)
        if found.type == _IMAGE or curves >= _CURVES:
            return True
    return False


def _picture(page: Any, kind: int) -> bytes:
    scale = _SIDE / max(page.get_size())
    bitmap = page.render(scale=scale, rev_byteorder=True, force_bitmap_format=kind)
    return png(bitmap.width, bitmap.height, bytes(bitmap.buffer), bitmap.stride)


def read(path: str, pages: int) -> dict[str, Any]:
    """Return the text of a PDF and pictures of those pages that hold a figure.

    :param pages: how many pictures at most.
    """
    pypdfium2 = import_module("pypdfium2")

    document = pypdfium2.PdfDocument(path)
    texts: list[str] = []
    pictures: list[dict[str, Any]] = []
    more = 0
    for number in range(min(len(document), _PAGES)):
        page = document[number]
        texts.append(page.get_textpage().get_text_range())
        if _has_figure(page):
            if len(pictures) < pages:
                shown = base64.b64encode(_picture(page, pypdfium2.raw.FPDFBitmap_BGR)).decode()
                pictures.append({"page": number + 1, "png": shown})
            else:
                more += 1
    return {
        "text": "\n\n".join(texts),
        "pages": len(document),
        "unread": max(0, len(document) - _PAGES),
        "pictures": pictures,
        "more": more,
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    try:
        json.dump(read(sys.argv[1], int(sys.argv[2])), sys.stdout)
    except ImportError:
        sys.exit(NOT_INSTALLED)
