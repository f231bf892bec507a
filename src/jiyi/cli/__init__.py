"""The command line. It parses, calls the engine and renders; every rule is the engine's.

Nothing heavy is imported before a command runs, so that `jiyi --help` and shell completion are quick.
"""

import atexit
import gc
import os
import sys


def main() -> None:
    """Run `jiyi`. The exit codes are in docs/cli.md."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and not (stream.encoding or "").lower().startswith("utf"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show Chinese is no reason to fail
    if sys.argv[1:2] in (["context"], ["observe"]):
        from .quick import run_quickly

        if run_quickly(sys.argv[1:]):
            return
    # Embedding one sentence is too little work to share: on a busy machine threads of BLAS only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A start allocates much and frees little: with usual collecting `jiyi search` takes a fifth more (`bench.cold`).
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)  # so that the interpreter does not search everything for garbage when it ends
    from .app import app_for

    app_for(sys.argv[1:2])(prog_name="jiyi")
