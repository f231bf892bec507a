"""The files of an import: plain, gzipped, in a zip archive or in a folder."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import InvalidInput

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
NOTE_SUFFIX = ".md"
SUFFIXES = (*JSON_SUFFIXES, NOTE_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file, or a member of a zip file."""

    path: Path
    member: str | None = None
    folder: Path | None = None  # the folder that was searched

    @property
    def name(self) -> str:
        """Name for error messages."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def stem(self) -> str:
        """File name without suffixes: the session of conversations that have no name."""
        name = Path(self.member or self.path).name
        suffixes = sorted(JSON_SUFFIXES, key=len)
        return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name)

    @property
    def relative(self) -> str:
        """Path inside the searched folder."""
        return self.path.relative_to(self.folder or self.path.parent).as_posix()

    @property
    def is_note(self) -> bool:
        return (self.member or self.path.name).lower().endswith(NOTE_SUFFIX)


def find_sources(path: Path) -> tuple[Source, ...]:
    """Return the files at a path: the file itself, all in a folder, or all in a zip file."""
    if not path.is_dir():
        return tuple(_in_file(path, None))
    endings = (*SUFFIXES, ".zip")
    files = sorted(
        file
        for file in path.rglob("*")
        if file.name.endswith(endings)
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    found = tuple(source for file in files for source in _in_file(file, path))
    if not found:
        raise InvalidInput(str(path), f"contains no file that ends in {', '.join(endings)}")
    return found


def _in_file(path: Path, folder: Path | None) -> Iterator[Source]:
    with read_errors(str(path)):
        if not path.exists():
            raise InvalidInput(str(path), "does not exist")
        if not zipfile.is_zipfile(path):
            if path.name.lower().endswith(".zip"):
                raise InvalidInput(str(path), "is not a zip file, or damaged: download it again")
            yield Source(path=path, folder=folder)
            return
        with _archive(path) as archive:
            members = sorted(name for name in archive.namelist() if name.endswith(JSON_SUFFIXES))
        if not members:
            raise InvalidInput(str(path), f"contains no file that ends in {', '.join(JSON_SUFFIXES)}")
        for member in members:
            yield Source(path=path, member=member, folder=folder)


@contextmanager
def open_text(source: Source) -> Iterator[IO[str]]:
    """Open a source as UTF-8 text, unpacking gzip and zip."""
    with read_errors(source.name), source.path.open("rb") as file:
        if source.member is None:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            yield _as_text(gzip.GzipFile(fileobj=file) if packed else file)
            return
        with _archive(file) as archive, _member(archive, source.member) as member:
            yield _as_text(gzip.GzipFile(fileobj=member) if source.member.endswith(".gz") else member)


def _archive(file: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (NotImplementedError, UnicodeDecodeError) as error:  # a later version, or undecodable names
        raise zipfile.BadZipFile(str(error)) from error


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except RuntimeError as error:  # encrypted, or an unknown compression
        raise zipfile.BadZipFile(str(error)) from error


def _as_text(file: Any) -> IO[str]:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")


@contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Translate errors of files and archives."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise InvalidInput(name, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InvalidInput(name, f"cannot be read: {error.strerror or error}") from error
