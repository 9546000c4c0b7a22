"""For tests of methods, yours and ours: simulated tables, and what every method must keep.

The promises are pytest classes in `fewbench.testing.conformance`, which needs pytest installed.
"""

from fewbench.testing.simulation import simulate

__all__ = ["simulate"]
