"""Four GPUs that are not there; named as plugin by the modules that use them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import fake_nvml
import pytest


@pytest.fixture
def four_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this process and those it starts find the GPUs of :mod:`fake_nvml`."""
    folder = tmp_path / "stand-in"
    fake_nvml.install(folder)
    (folder / "state.json").write_text("{}")
    monkeypatch.setenv("FAKE_NVML", str(folder / "state.json"))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    stand_in = importlib.import_module("pynvml")
    assert stand_in.__file__ == str(folder / "pynvml.py")
    # Entered by monkeypatch too: what it undoes last is then what was there before the test.
    del sys.modules["pynvml"]
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    yield
    assert stand_in._open == 0  # every session was closed
