"""Files and folders that survive a power failure."""

import os
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a private folder and its parents, and fsync each parent so that the new entry survives a crash."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in reversed(missing):
        flush(folder.parent)


def flush(path: Path) -> None:
    """fsync a file or, where the system supports it, a folder."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
