"""How much of a submission a judge is shown, and how what is too long is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What one kind of file may take.

    :param each: bytes of one file.
    :param total: bytes of all files of the kind.
    :param files: how many of them.
    :param read: bytes that are read of a file; of a larger one its two ends.
    """

    each: int
    total: int
    files: int
    read: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one review, in bytes of UTF-8 text and in pictures.

    Bytes and not characters: English has one of either for each letter, and the scripts whose
    letters take two or three bytes also take that many more of a model's tokens. Together the
    shares are 400,000, some 100,000 to 150,000 tokens: the smallest window of the models that are
    worth asking has 200,000, of which the answer takes 16,000.

    :param documents: papers, reports, proposals and what they start from. A long published paper
        has 40,000 bytes; the contract takes 2,000,000, which are read so that pictures inside a
        text do not count.
    :param log: of the runs.
    :param code: programs and settings; published runs have from 4,000 to 490,000 bytes of them.
    :param data: what programs wrote; the ends of a table show what it is, and a report the rest.
    :param figures: pictures. Anthropic takes smaller ones only once there are more than 20.
    :param picture_bytes: of all pictures together; Google takes 20 MB of base64 and text in all.
    """

    documents: Share = Share(each=100_000, total=200_000, files=10, read=2_000_000)
    log: Share = Share(each=40_000, total=40_000, files=1, read=2_000_000)
    code: Share = Share(each=40_000, total=120_000, files=60, read=400_000)
    data: Share = Share(each=6_000, total=40_000, files=40, read=50_000)
    figures: int = 10
    picture_bytes: int = 12_000_000


def shared_out(sizes: Sequence[int], share: Share) -> list[int]:
    """Return how much of each text is shown: short ones whole, and the long ones equally much.

    So no file, wherever it stands in the order, can take the room of another.
    """
    wanted = [min(size, share.each) for size in sizes]
    left, given = share.total, [0] * len(wanted)
    for place in sorted(range(len(wanted)), key=lambda one: wanted[one]):
        waiting = sum(1 for one in range(len(wanted)) if not given[one] and wanted[one])
        given[place] = min(wanted[place], left // max(waiting, 1))
        left -= given[place]
    return given


def cut(text: str, size: int, unread: int = 0) -> tuple[str, int]:
    """Return *text* in *size* bytes, without its middle if need be, and how much of it is missing.

    :param unread: characters that lie in the middle and are not in *text*; the bytes of a part of a
        file that was not read count as so many.
    """
    data = text.encode()
    if len(data) <= size and not unread:
        return text, 0
    half = min(size, len(data)) // 2
    head = data[:half].decode(errors="ignore")
    tail = data[len(data) - half :].decode(errors="ignore")
    total = len(text) + unread
    missing = total - len(head) - len(tail)
    return f"{head}\n[… {missing:,} of {total:,} characters were cut here …]\n{tail}", missing
