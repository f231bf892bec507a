"""A disk that loses power: recorded calls are replayed up to a point, and unflushed data is lost, torn or reordered.

The model is stricter than most file systems. File content is safe once the file was flushed; the existence or name of
a file or folder is safe once its parent folder was flushed. Unflushed renames happen in order, up to some point;
unflushed writes reach the disk in any order, sector by sector.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from .shim import Call, Kind

SECTOR = 512
FOLDER = "folder"


@dataclass(eq=False)
class Inode:
    """A file's flushed content and its later writes."""

    safe: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes | None]] = field(default_factory=list)  # offset and data; None: truncated

    def flush(self) -> None:
        for at, data in self.since:
            _put(self.safe, at, data)
        self.since.clear()

    def after_power_loss(self, rng: random.Random, share: float) -> bytes:
        """Content after a power cut, with `share` of the unflushed sectors written, in any order."""
        left = bytearray(self.safe)
        pieces: list[tuple[int, bytes | None]] = []
        for at, data in self.since:
            pieces += [(at, None)] if data is None else _sectors(at, data)
        kept = [piece for piece in pieces if rng.random() < share]
        if share < 1:
            rng.shuffle(kept)
        for at, piece in kept:
            _put(left, at, piece)
        return bytes(left)


def _put(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        content.extend(bytes(at - len(content)))
    else:
        content.extend(bytes(max(0, at - len(content))))
        content[at : at + len(data)] = data


def _sectors(at: int, data: bytes) -> Iterable[tuple[int, bytes]]:
    end = at + len(data)
    while at < end:
        border = min((at // SECTOR + 1) * SECTOR, end)
        yield at, data[len(data) - (end - at) : len(data) - (end - border)]
        at = border


Names = dict[str, Inode | str]


class Disk:
    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: Names = {}  # as programs see them
        self._safe: Names = {}
        self._since: list[Call] = []  # unflushed changes of names
        self._inodes: dict[int, Inode] = {}  # of files created by those changes

    def play(self, call: Call) -> None:
        path = call.path.removesuffix(" (deleted)")
        match call.kind:
            case Kind.WRITE | Kind.TRUNCATE:
                inode = self.names.get(path)
                if isinstance(inode, Inode):
                    inode.since.append((call.at, None if call.kind is Kind.TRUNCATE else call.data))
            case Kind.SYNC:
                inode = self.names.get(path)
                if isinstance(inode, Inode):
                    inode.flush()
                else:
                    self._flush_folder(path)
            case Kind.MARK:
                pass
            case _:
                if call.kind is Kind.CREATE:
                    self._inodes[id(call)] = Inode()
                self._since.append(call)
                self._rename(self.names, call)

    def _flush_folder(self, folder: str) -> None:
        """Make the entries of a folder safe, with everything that had to happen before."""
        own = [call for call in self._since if folder in _folders(call)]
        for call in own:
            self._rename(self._safe, call)
            self._since.remove(call)

    def _rename(self, names: Names, call: Call) -> None:
        match call.kind:
            case Kind.CREATE:
                names[call.path] = self._inodes[id(call)]
            case Kind.MKDIR:
                names[call.path] = FOLDER
            case Kind.UNLINK | Kind.RMDIR:
                names.pop(call.path, None)
            case Kind.RENAME:
                if call.path in names:
                    names[call.other] = names.pop(call.path)
            case Kind.LINK:
                if call.path in names:
                    names[call.other] = names[call.path]
            case Kind.EXCHANGE:
                if call.path in names and call.other in names:
                    names[call.path], names[call.other] = names[call.other], names[call.path]

    def lose_power(self, into: Path, rng: random.Random, share: float) -> None:
        """Write the remaining content of the root into a folder."""
        names = dict(self._safe)
        for call in self._since[: round(len(self._since) * (rng.random() if 0 < share < 1 else share))]:
            self._rename(names, call)
        contents: dict[Inode, bytes] = {}
        for path, inode in sorted(names.items()):
            if path.endswith("-shm") or any(str(above) not in names for above in self._above(path)):
                continue  # shared memory, or in a folder that was lost
            place = into / PurePath(path).relative_to(self.root)
            if isinstance(inode, Inode):
                if inode not in contents:
                    contents[inode] = inode.after_power_loss(rng, share)
                place.write_bytes(contents[inode])
            else:
                place.mkdir()

    def _above(self, path: str) -> list[PurePath]:
        """Folders between the root and a file."""
        return [above for above in PurePath(path).parents if str(above).startswith(self.root + "/")]


def _folders(call: Call) -> set[str]:
    return {str(PurePath(path).parent) for path in (call.path, call.other) if path}
