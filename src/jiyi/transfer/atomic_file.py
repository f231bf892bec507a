"""Files that appear whole or not at all: what is being written lies beside its place until it is finished."""

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


def free(argument: str, path: Path, *, overwrite: bool) -> Path:
    """A place for a new file. What lies there is only replaced if that was asked for."""
    path = path.expanduser()
    if path.is_dir():
        raise InvalidInput(argument, f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InvalidInput(argument, f"the folder {path.parent} is not there")
    if path.exists() and not overwrite:
        raise InvalidInput(argument, f"{path} is there already: name another file, or say that it may be replaced")
    return path


@contextmanager
def becoming(path: Path) -> Iterator[Path]:
    """A path beside the wanted one, for its owner alone. At the end it takes the wanted one's place, all at once; after
    an error it is gone."""
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
    """Let it survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write to; packed, if its name ends so. Packed or not, equal contents are equal bytes."""
    with becoming(path) as part, part.open("wb") as file:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield file
