"""Folders that a power cut does not take away again."""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder that belongs to its owner alone, with those above it.

    What lies in a new folder is only as safe as the folder's name in the one above it; so that is flushed, too."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in reversed(missing):
        flush_folder(folder.parent)


def flush_folder(path: Path) -> None:
    """Let the names in a folder survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
