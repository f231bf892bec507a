"""int8 storage: symmetric per row, with float16 scales; vectors stay float16."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float32]]
SCALE = "#scale"


def pack(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
    out: dict[str, NDArray[np.generic]] = {}
    for name, value in arrays.items():
        if value.ndim < 2 or value.size < 10_000:
            out[name] = value.astype(np.float16)
            continue
        scale = (np.abs(value).max(1, keepdims=True) / 127 + 1e-8).astype(np.float16)
        out[name] = np.rint(value / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
        out[name + SCALE] = scale
    return out


def unpack(stored: Mapping[str, NDArray[np.generic]]) -> Arrays:
    out: Arrays = {}
    for name in stored:
        if name.endswith(SCALE):
            continue
        value = stored[name].astype(np.float32)
        out[name] = value * stored[name + SCALE].astype(np.float32) if name + SCALE in stored else value
    return out
