"""Folders of uploads and exports, which all server processes of a store share. The name of a folder begins with the
process that it belongs to, which holds a lock while it lives; the next process that starts takes over the folders of
those that ended."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..durable import make_folder, try_lock
from ..ids import new_id

ID = re.compile("[0-9a-z]{26}")


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks = folder.with_name(f"{folder.name}.locks")
        self._owner = new_id()
        self._lock: int | None = None

    def open(self) -> None:
        make_folder(self._folder)
        make_folder(self._locks)
        self._lock = os.open(self._locks / self._owner, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(self._lock)  # nobody else knows this file yet

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            (self._locks / self._owner).unlink(missing_ok=True)

    def folder_of(self, import_id: str) -> Path:
        """Return the folder of an import of this process."""
        return self._folder / f"{self._owner}.{import_id}"

    def find(self, import_id: str) -> Path | None:
        """Return the folder of an import of any process."""
        return next(self._folder.glob(f"*.{import_id}/"), None) if ID.fullmatch(import_id) else None

    def folders(self) -> list[Path]:
        return sorted(self._folder.glob("*/"))

    def export_folder(self) -> Path:
        make_folder(self._folder)
        return Path(tempfile.mkdtemp(prefix=f"{self._owner}.export-", dir=self._folder))

    def take_over(self) -> Iterator[Path]:
        """Yield the folders of processes that ended, which belong to this process from now on."""
        for folder in self.folders():
            owner, _, name = folder.name.rpartition(".")
            if self._is_running(owner):
                continue
            try:
                yield folder.rename(self._folder / f"{self._owner}.{name}")
            except FileNotFoundError:  # another process was faster
                continue
            if owner:
                (self._locks / owner).unlink(missing_ok=True)

    def _is_running(self, owner: str) -> bool:
        if not owner:
            return False
        try:
            handle = os.open(self._locks / owner, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(handle)
        finally:
            os.close(handle)
