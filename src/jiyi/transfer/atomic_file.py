"""Files that appear complete or not at all: they are written under a temporary name and then renamed."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ..errors import InvalidInput
from ..ids import new_id


def check_target(argument: str, path: Path, *, overwrite: bool) -> Path:
    """Return the path if a file may be written there."""
    path = path.expanduser()
    if path.is_dir():
        raise InvalidInput(argument, f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InvalidInput(argument, f"the folder {path.parent} does not exist")
    if path.exists() and not overwrite:
        raise InvalidInput(argument, f"{path} exists already: name another file, or allow overwriting")
    return path


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, private to its owner. It replaces `path` at the end, or is removed after
    an error."""
    part = path.with_name(f".{path.name}.{new_id()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield part
        sync(part)
        part.replace(path)
        sync(path.parent)
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


def sync(path: Path) -> None:
    """Flush a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def open_new(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file for writing, gzipped if its name ends in .gz. Equal contents give equal bytes."""
    with replace_file(path) as part, part.open("wb") as file:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield file
