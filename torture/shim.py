"""Build the library `shim.c`, which intercepts system calls, and control it."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from .trial import Trial

SOURCE = Path(__file__).with_name("shim.c")


class Mode(IntEnum):
    OFF, COUNT, KILL, EIO, FULL_DISK, HALF, RECORD = range(7)


class Kind(IntEnum):
    WRITE, SYNC, TRUNCATE, CREATE, RENAME, EXCHANGE, UNLINK, LINK, MKDIR, MARK, RMDIR = range(1, 12)


def environment(trial: Trial) -> dict[str, str] | None:
    """Environment variables that load the shim into a process; None without a compiler, which the trial reports."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        told = "NOT RUN: there is no C compiler (Debian: apt-get install gcc), and these faults need one"
        trial.notes.append(told)
        if os.environ.get("CI") == "true":
            trial.breaks("other", told)
        return None
    library = trial.scratch / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


class Shim:
    """Controls the shim of the current process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.shim_seen.restype = self._library.shim_faults.restype = ctypes.c_long

    def arm(self, folder: Path, mode: Mode, at: int = -1, record: int = -1) -> None:
        """Count calls that change something below `folder` from now on, and inject the fault at number `at`."""
        self._library.shim_arm(os.fsencode(folder), int(mode), ctypes.c_long(at), record)

    def disarm(self) -> None:
        self._library.shim_arm(b"", int(Mode.OFF), ctypes.c_long(-1), -1)

    def clock(self, ahead: float) -> None:
        """Shift the time of day."""
        self._library.shim_clock(ctypes.c_long(round(ahead)))

    def mark(self, number: int) -> None:
        self._library.shim_mark(ctypes.c_long(number))

    @property
    def seen(self) -> int:
        return int(self._library.shim_seen())

    @property
    def faults(self) -> int:
        return int(self._library.shim_faults())


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call that changed something."""

    kind: Kind
    path: str
    other: str
    at: int  # offset, length, or number of a mark
    data: bytes


def recorded(path: Path) -> Iterator[Call]:
    head = struct.Struct("=4Iq")
    with path.open("rb") as file:
        while sizes := file.read(head.size):
            kind, first, second, length, at = head.unpack(sizes)
            yield Call(Kind(kind), os.fsdecode(file.read(first)), os.fsdecode(file.read(second)), at, file.read(length))
