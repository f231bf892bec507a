"""Mutants that survive and do no harm: they were looked at, and this is why."""

from __future__ import annotations

SPARED: dict[str, str] = {}
