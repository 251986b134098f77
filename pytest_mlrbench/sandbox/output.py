"""What a command prints, kept in a file up to a limit."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

#: Bytes of the end of the output that are returned.
TAIL = 2000


class Output:
    """Takes output in pieces of any size; keeps its beginning in a file and its end in memory.

    :param limit: bytes that the file keeps; what comes after is counted.
    """

    def __init__(self, log: Path, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._tail = b""
        self._remarks: list[str] = []
        self._file: BinaryIO = log.open("wb", buffering=0)

    def feed(self, piece: bytes) -> None:
        """Take the next piece.

        :raises OSError: it cannot be written.
        """
        if self.total < self.limit:
            self._write(piece[: self.limit - self.total])
        self.total += len(piece)
        self._tail = (self._tail + piece[-TAIL:])[-TAIL:]

    def _write(self, piece: bytes) -> None:
        while piece:  # an unbuffered file may take a part
            piece = piece[self._file.write(piece) :]

    @property
    def tail(self) -> str:
        """The end of the output; what is no text in it is replaced."""
        return self._tail.decode("utf-8", "replace")

    def remark(self, words: str) -> None:
        """Have the file end with a line of ours, whatever its limit."""
        self._remarks.append(words)

    def close(self) -> None:
        """Say in the file how much is missing, and what was remarked.

        :raises OSError: it cannot be written.
        """
        if self._file.closed:
            return
        with self._file:
            if self.total > self.limit:
                lost = self.total - self.limit
                self._remarks.insert(0, f"{lost} more bytes of output were not kept")
            for remark in self._remarks:
                self._write(f"\n[{remark}]\n".encode())
