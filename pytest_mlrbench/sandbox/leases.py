"""Leases of GPUs: a file for each, locked by the case that has the GPU.

The kernel drops a lock when the process that holds it ends, however it ends, so a lease needs no
clock and nobody to clean up after it. What may outlive its process is a container: whoever gets a
lease first removes those that were left on the GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from pytest_mlrbench.errors import InputError, SystemFault

#: Names the folder of the lock files, for all who share the GPUs.
VARIABLE = "MLR_GPU_LOCKS"
#: Not ``$TMPDIR``, which may be another one for each user and each job.
FOLDER = Path("/tmp/mlrbench-gpus")
#: Seconds between two looks at GPUs that others have, about.
POLL = 0.1


def lock_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the lock files."""
    return Path(environ.get(VARIABLE) or FOLDER).absolute()


class Leases:
    """Lends GPUs to cases, each to one at a time, among all processes that use the folder.

    :param folder: of the lock files; see :func:`lock_folder`.
    :param uuids: of the GPUs that may be lent, in the order in which they are tried.
    :param cleanup: called with the UUID of a GPU, in a thread, before a case has it and after:
        removes what dead processes or earlier cases of this one have left running there, and raises
        if that cannot be done.
    """

    def __init__(
        self, folder: Path, uuids: Sequence[str], cleanup: Callable[[str], object]
    ) -> None:
        self.folder = folder
        self.uuids = tuple(uuids)
        self._cleanup = cleanup
        # Who has waited longest in this process looks for a free GPU, and the others wait for it.
        self._turn = asyncio.Lock()
        #: UUID → its locked file, where nobody can say that nothing is running there any more.
        self._kept: dict[str, int] = {}

    def prepare(self) -> None:
        """Make the folder and the files, once per run.

        :raises InputError: they cannot be used.
        """
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True, exist_ok=True)
                self.folder.chmod(0o1777)  # the mode of mkdir is cut by the umask
            for uuid in self.uuids:
                for kind in ("lock", "wait"):
                    os.close(_open(self._file(uuid, kind)))
        except OSError as error:
            raise InputError(
                f"the lock files of GPUs cannot be kept in {self.folder} ({error.strerror}): name a"
                f" folder that all who share the GPUs can write, {VARIABLE}=DIR."
            ) from None

    @asynccontextmanager
    async def take(self, *, case: str = "") -> AsyncIterator[tuple[str]]:
        """Wait for a GPU, and have it until the block has ended and the GPU is known to be unused.

        In a process, who comes first is served first; processes that wait have equal chances.

        :param case: is written into the lock file, for people who ask who has a GPU.
        :raises SystemFault: a lock file cannot be used (cause ``gpu``), or as *cleanup* raises it.
        """
        async with self._turn:
            uuid, file = await self._wait()
        _write(file, f"{case} (process {os.getpid()})\n".encode())
        try:
            await asyncio.to_thread(self._cleanup, uuid)
            yield (uuid,)
        finally:
            # If this fails, the GPU stays ours: the next case here tries again, and when this
            # process has ended, whatever it has left there is known to be without an owner.
            self._kept[uuid] = file
            with contextlib.suppress(SystemFault):
                await asyncio.to_thread(self._cleanup, uuid)
                self._give_back(uuid)

    def _give_back(self, uuid: str) -> None:
        # The next case may have taken it over already.
        if (file := self._kept.pop(uuid, None)) is not None:
            _write(file, b"")
            _unlock(file)

    async def _wait(self) -> tuple[str, int]:
        # What others wait for is theirs first. Whoever has just given a GPU back would otherwise
        # have it again before they look, as often as it has another case.
        if got := self._get([uuid for uuid in self.uuids if not self._is_wanted(uuid)]):
            return got
        with ExitStack() as wishes:
            for uuid in self.uuids:
                if (wish := _lock(self._file(uuid, "wait"), fcntl.LOCK_SH)) is not None:
                    wishes.callback(_unlock, wish)
            while True:
                # By chance, so that no process always comes just before another.
                await asyncio.sleep(POLL * random.uniform(0.5, 1.5))
                if got := self._get(self.uuids):
                    return got

    def _is_wanted(self, uuid: str) -> bool:
        """Whether a case waits for this GPU."""
        wish = _lock(self._file(uuid, "wait"), fcntl.LOCK_EX)
        if wish is not None:
            _unlock(wish)
        return wish is None

    def _get(self, uuids: Sequence[str]) -> tuple[str, int] | None:
        """Lock the first GPU that is free."""
        for uuid in uuids:
            file = self._kept.pop(uuid, None)
            if file is None:
                file = _lock(self._file(uuid), fcntl.LOCK_EX)
            if file is not None:
                return uuid, file
        return None

    def _file(self, uuid: str, kind: str = "lock") -> Path:
        return self.folder / f"{re.sub('[^A-Za-z0-9-]', '_', uuid)}.{kind}"


def _lock(path: Path, kind: int) -> int | None:
    """Return the open, locked file; null if another has a lock that excludes this one.

    :raises SystemFault: it cannot be used.
    """
    try:
        file = _open(path)
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            # A lock on a file that was deleted meanwhile, as by what cleans /tmp, excludes nobody.
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError:
            os.close(file)
            raise
    except OSError as error:
        what = f"the lock file {path} cannot be used: {error.strerror}."
        raise SystemFault("gpu", what) from None
    os.close(file)
    return None


def _unlock(file: int) -> None:
    # By name, since a fork of this process may have the file open as well.
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _write(file: int, note: bytes) -> None:
    with contextlib.suppress(OSError):  # the disk may be full: it is but a note
        os.ftruncate(file, 0)
        os.pwrite(file, note, 0)


def _open(path: Path) -> int:
    """Open a lock file, which all users may, and make it if it is not there."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        # Without O_CREAT: in a folder like /tmp it is refused for a file of another user.
        return os.open(path, flags)
    except FileNotFoundError:
        _make(path)
    return os.open(path, flags)


def _make(path: Path) -> None:
    # It appears with its mode, and is never replaced.
    made, part = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        os.fchmod(made, 0o666)
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        os.close(made)
        os.unlink(part)
