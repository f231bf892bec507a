"""From a path to chats: which files there are, what each of them is, and how it is opened."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ...errors import InvalidInput
from . import plain
from .chat import Chat, Reader
from .chatgpt import chatgpt
from .claude import claude
from .locomo import SESSION, locomo
from .longmemeval import longmemeval
from .values import json_values

SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
KNOWN = (
    "holds no chat of a known shape: an export of ChatGPT or Claude, OpenAI-style messages, LoCoMo or LongMemEval"
    " (docs/import.md)"
)


class UnknownShape(InvalidInput):
    """The file is JSON, but no chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file, or a member of a zip file."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def called(self) -> str:
        """What a chat is called that has no name in the file."""
        name = Path(self.member or self.path).name
        return next((name.removesuffix(suffix) for suffix in sorted(SUFFIXES, key=len) if name.endswith(suffix)), name)


def find_sources(path: Path) -> tuple[Source, ...]:
    """The files at a path: itself, all in a folder, or all in a zip file, as it was downloaded."""
    if not path.is_dir():
        return tuple(_inside(path))
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith((*SUFFIXES, ".zip")))
    found = tuple(chain.from_iterable(map(_inside, files)))
    if not found:
        raise InvalidInput(str(path), f"holds no file that ends in {', '.join((*SUFFIXES, '.zip'))}")
    return found


def _inside(path: Path) -> Iterator[Source]:
    with failures(str(path)):
        if not path.exists():
            raise InvalidInput(str(path), "is not there")
        if not zipfile.is_zipfile(path):
            if path.name.lower().endswith(".zip"):
                raise InvalidInput(str(path), "is no zip file, or damaged: download it again")
            yield Source(path=path)
            return
        with _archive(path) as archive:
            members = sorted(name for name in archive.namelist() if name.endswith(SUFFIXES))
        if not members:
            raise InvalidInput(str(path), f"holds no file that ends in {', '.join(SUFFIXES)}")
        for member in members:
            yield Source(path=path, member=member)


def read_chats(source: Source) -> Iterator[Chat]:
    """The chats of one file, one after the other; the file is never in memory as a whole."""
    with failures(source.name), opened(source) as stream:
        values = json_values(stream, source.name)
        first = next(values, None)
        if first is None:
            raise UnknownShape(source.name, "is an empty list")
        yield from reader_of(source.name, first[1])(chain([first], values), source.called)


def _is_locomo(value: dict[str, Any]) -> bool:
    return isinstance(value.get("conversation"), dict) and any(map(SESSION.fullmatch, value["conversation"]))


# Each shape is known by a field that no other has.
SHAPES: tuple[tuple[Callable[[dict[str, Any]], bool], Reader], ...] = (
    (lambda value: isinstance(value.get("mapping"), dict), chatgpt),
    (lambda value: isinstance(value.get("chat_messages"), list), claude),
    (lambda value: "haystack_sessions" in value, longmemeval),
    (_is_locomo, locomo),
    (lambda value: isinstance(value.get("messages"), list), plain.chats),
    (plain.is_message, plain.messages),
)


def reader_of(name: str, value: Any) -> Reader:
    """The reader for a file that begins with this value."""
    reader = next((reader for fits, reader in SHAPES if isinstance(value, dict) and fits(value)), None)
    if reader is None:
        raise UnknownShape(name, KNOWN)
    return reader


@contextmanager
def opened(source: Source) -> Iterator[IO[str]]:
    with source.path.open("rb") as file:
        if source.member is None:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            yield _text(gzip.GzipFile(fileobj=file) if packed else file)
            return
        with _archive(file) as archive, _member(archive, source.member) as member:
            yield _text(gzip.GzipFile(fileobj=member) if source.member.endswith(".gz") else member)


def _archive(file: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except (NotImplementedError, UnicodeDecodeError) as error:  # of a later version, or with names that are none
        raise zipfile.BadZipFile(str(error)) from error


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except RuntimeError as error:  # it needs a password, or is packed in a way that Python does not know
        raise zipfile.BadZipFile(str(error)) from error


def _text(file: Any) -> IO[str]:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")


@contextmanager
def failures(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise InvalidInput(name, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InvalidInput(name, f"cannot be read: {error.strerror or error}") from error
