"""What the outputs of a run say by themselves, however its programs are written."""

from __future__ import annotations

from pytest_mlrbench.evidence.code_announced import announced
from pytest_mlrbench.evidence.code_hollow import hollow
from pytest_mlrbench.evidence.code_offsets import constant_offsets

__all__ = ["announced", "constant_offsets", "hollow"]
