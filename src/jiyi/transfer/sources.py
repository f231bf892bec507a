"""The files of an import: plain, gzipped, in a zip archive or in a folder, and a stream of their JSON values."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import InvalidInput

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
NOTE_SUFFIX = ".md"
MAX_RATIO = 100  # of unpacked to packed bytes; chats reach about 20
MIN_UNPACKED = 64 * 1024 * 1024  # bytes that every file may unpack to
MAX_VALUE = 16 * 1024 * 1024  # characters of one conversation or memory in a file; decoding it is one step
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
    def label(self) -> str:
        """Name for reports: the path inside what was imported."""
        if self.member is None:
            return self.relative
        return self.member if self.folder is None else f"{self.relative}/{self.member}"

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
            if sum(archive.getinfo(name).file_size for name in members) > _most_unpacked(path):
                raise zlib.error(f"it unpacks to more than {MAX_RATIO} times its size")
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
            yield _as_text(_Unpacked(gzip.GzipFile(fileobj=file), source) if packed else file)
            return
        with _archive(file) as archive, _member(archive, source.member) as member:
            unpacked = gzip.GzipFile(fileobj=member) if source.member.endswith(".gz") else member
            yield _as_text(_Unpacked(unpacked, source))


def _most_unpacked(path: Path) -> int:
    return max(MIN_UNPACKED, MAX_RATIO * path.stat().st_size)


class _Unpacked(io.RawIOBase):
    """An unpacked stream that ends with an error where it has grown beyond all measure."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, source: Source) -> None:
        self._stream = stream
        self._left = _most_unpacked(source.path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._stream.read(len(buffer))
        self._left -= len(read)
        if self._left < 0:
            raise zlib.error(f"it unpacks to more than {MAX_RATIO} times its size")
        buffer[: len(read)] = read
        return len(read)


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
    buffered = io.BufferedReader(file) if isinstance(file, io.RawIOBase) else file
    return io.TextIOWrapper(buffered, encoding="utf-8-sig", newline="\n")


@contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Translate errors of files and archives."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise InvalidInput(name, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InvalidInput(name, f"cannot be read: {error.strerror or error}") from error


Values = Iterable[tuple[str, Any]]  # each with its place in the file

CHUNK = 1 << 16
# Decoding a truncated value fails within this distance of the end, unless it ends inside a string.
_NEAR_THE_END = 16
MOST_MARKS = 1_500_000  # quotation marks and commas of a record: decoding it is one step, for which all others wait
_UNTERMINATED = "Unterminated string"
_NUMBER_CHARACTERS = "0123456789.eE+-"
_SPACE = re.compile(r"[ \t\r\n]*")


def json_values(stream: IO[str], name: str) -> Iterator[tuple[str, Any]]:
    """Yield each value with its place: `chats.json, [17]` in a list, `chats.jsonl, line 17` in JSONL."""
    window = _Window(stream, name)
    try:
        first = window.peek()
        if first == "":
            raise InvalidInput(name, "is empty")
        if first == "[":
            yield from _elements(window, name)
        else:
            while window.peek():
                place = f"{name}, line {window.line}"
                yield place, window.value(place)
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"is not UTF-8 (after line {window.line:,}): {error.reason}") from None


def _elements(window: _Window, name: str) -> Iterator[tuple[str, Any]]:
    window.skip("[")
    at = 0
    while window.peek() != "]":
        place = f"{name}, [{at}]"
        yield place, window.value(place)
        at += 1
        following = window.peek()
        if following == ",":
            window.skip(",")
            if window.peek() == "]":
                raise InvalidInput(f"{name}, line {window.line}", "is not JSON: a comma before the end of the list")
        elif following != "]":
            what = f"{following!r} instead of a comma" if following else "the list does not end: the file is truncated"
            raise InvalidInput(f"{name}, line {window.line}", f"is not JSON: {what}")
    window.skip("]")
    if window.peek():
        raise InvalidInput(f"{name}, line {window.line}", "is not JSON: there is text after the list")


class _Window:
    """The part of the file being decoded. It grows by doubling, so each character is decoded only a few times."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream = stream
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False
        self._decode = json.JSONDecoder().raw_decode
        self.line = 1

    def peek(self) -> str:
        """Return the next non-space character, or "" at the end."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it also matches ""
            self._advance_to(end)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self, mark: str) -> None:
        self._advance_to(self._at + len(mark))

    def value(self, place: str) -> Any:
        while True:
            if self._text.count('"', self._at) + self._text.count(",", self._at) > MOST_MARKS:
                raise InvalidInput(place, "is too large: one record has more values than can be read at once")
            try:
                found, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(_UNTERMINATED) or error.pos > len(self._text) - _NEAR_THE_END
                if not (cut and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise InvalidInput(place, f"is not JSON (line {line:,}): {error.msg}") from None
            except (ValueError, RecursionError) as error:  # too many digits, or nested too deeply
                raise InvalidInput(place, f"cannot be read: {error}") from None
            else:
                incomplete = end == len(self._text) or (
                    isinstance(found, (int, float)) and self._text[end] in _NUMBER_CHARACTERS
                )
                if not (incomplete and self._more()):  # 12 may be the start of 123 or 12.5e-7
                    self._advance_to(end)
                    return found

    def _advance_to(self, at: int) -> None:
        self.line += self._text.count("\n", self._at, at)
        self._at = at

    def _more(self) -> bool:
        """Read another chunk and drop the decoded text."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > MAX_VALUE:
            raise InvalidInput(f"{self._name}, line {self.line}", f"is a value of more than {MAX_VALUE:,} characters")
        read = self._stream.read(min(max(CHUNK, len(rest)), MAX_VALUE + 1 - len(rest)))
        self._ended = not read
        self._text = rest + read
        self._at = 0
        return bool(read)
