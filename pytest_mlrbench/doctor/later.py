"""What is looked at though this version does not use it: the one place that says so."""

from __future__ import annotations

from collections.abc import Mapping

#: Name of a finding → what a later version does with it. A line goes when that version is this one.
NOT_USED_YET: Mapping[str, str] = {}
