"""Independent seeds from one seed, the same whatever the order of work."""

import numpy as np


def child_seed(seed: int, *keys: int) -> int:
    """Return a seed that follows from `seed` and the keys, in 0..2**31-1.

    Examples
    --------
    >>> child_seed(0, 1) == child_seed(0, 1), child_seed(0, 1) == child_seed(0, 2)
    (True, False)
    """
    return int(np.random.SeedSequence(seed, spawn_key=keys).generate_state(1)[0] >> 1)
