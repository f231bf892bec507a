"""Files and folders that survive a power failure."""

import errno
import os
import sys
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


def try_lock(handle: int) -> bool:
    """Lock an open file against other processes, until it is closed; return False if another one holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True
