"""Files of an image, read without anything being run in it."""

from __future__ import annotations

import tarfile
import uuid
from io import BytesIO
from typing import TYPE_CHECKING

from pytest_mlrbench.sandbox.labels import labels

if TYPE_CHECKING:
    from docker import DockerClient

#: Bytes that an archive has beside the file in it.
_AROUND = 65_536


def content_of(client: DockerClient, image: str, path: str, most: int) -> bytes | None:
    """Return what a regular file of an image holds.

    :returns: null if it is no such file, or has more than *most* bytes.
    """
    from docker.errors import NotFound

    container = client.containers.create(
        image,
        entrypoint=["/bin/true"],
        name=f"mlrbench-probe-{uuid.uuid4().hex[:12]}",
        labels=labels("", "probe"),
        network_mode="none",
    )
    try:
        pieces, about = container.get_archive(path)
        if about is None or about["size"] > most:
            return None
        packed = BytesIO()
        for piece in pieces:
            packed.write(piece)
            if packed.tell() > most + _AROUND:
                return None
    except NotFound:
        return None
    finally:
        container.remove(force=True)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        member = archive.next()
        file = archive.extractfile(member) if member is not None and member.isreg() else None
        return file.read(most) if file is not None else None
