"""Benchmarks: `python -m bench` measures speed; retrieval, extraction, everyday, … measure quality."""

import os

# On shared cores a second BLAS thread mostly waits: one thread embeds a question in 3 to 5 ms (p95), two took 40 to
# 100. Must be set before numpy is imported.
for library in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
