"""Sessions of onnxruntime, which runs the models that are part of the package."""

import os
from pathlib import Path
from typing import Any


def new_session(path: Path, *, is_deep: bool = False) -> Any:
    """Load a network that runs in the thread that calls it, so that a forked process can use it too. A deep one is
    worth more time for optimising it."""
    # From version 1.29 on it sends events to Microsoft and keeps a number of the device in the user's cache folder,
    # unless this is set before it is first imported. A value that the user has set stays.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # which never gives memory back
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # unpack weights once, not at each run
    # Further optimisation takes 10 ms and 8 MB of each process, and makes the embedder no faster.
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_deep else levels.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
