"""Before numpy is imported: tests run side by side, and threads that wait for work cost time."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
