"""What the outputs of a run say by themselves, however its programs are written."""

from __future__ import annotations

from pytest_mlrbench.evidence.code.announced import announced
from pytest_mlrbench.evidence.code.hollow import hollow
from pytest_mlrbench.evidence.code.offsets import constant_offsets

__all__ = ["announced", "constant_offsets", "hollow"]
