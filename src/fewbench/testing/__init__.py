"""Tools for tests of methods: simulated tables, and a conformance suite for every method.

The suite is `fewbench.testing.conformance`, which needs pytest.
"""

from fewbench.testing.simulation import simulate, simulate_run

__all__ = ["simulate", "simulate_run"]


def __dir__() -> list[str]:
    return __all__
