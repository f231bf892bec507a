"""How fast Jiyi is, against a floor measured in the same run. `python -m bench --help` tells the options."""

import os

# On shared cores a second BLAS thread mostly waits for its core: where one thread embeds a question in 3 to 5 ms (p95),
# two took 40 to 100, and beside such a floor nothing would show. To be said before numpy is loaded; what the
# environment says already wins.
for library in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
