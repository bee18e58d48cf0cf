"""The severities of findings. Standard library only: the catalogue's codes are completed on machines without any package."""

from __future__ import annotations

NOTE, REBUILDABLE, LOSS = "note", "rebuildable", "loss"
