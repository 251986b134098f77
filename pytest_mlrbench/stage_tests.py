"""The shipped tests, for a test module of your own.

A module with this one line lies under your root folder, so that your ``conftest.py`` can override
fixtures and hooks for it, and its test ids can be pasted back::

    from pytest_mlrbench.stage_tests import *
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.stages import STAGES


def _load(stage: str) -> Callable[..., Any]:
    """Import the test of *stage* from the shipped folder, which is no package."""
    name = f"test_mlr_{stage}"
    spec = importlib.util.spec_from_file_location(name, shipped("benchmarks") / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, f"test_{stage}")
    return function


globals().update({f"test_{stage}": _load(stage) for stage in STAGES})

__all__ = [f"test_{stage}" for stage in STAGES]  # pyright: ignore
