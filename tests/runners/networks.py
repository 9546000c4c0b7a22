"""Models with weights, as fewbench looks at those of torch."""

import numpy as np


class Tensor:
    """What is looked at of a torch tensor."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float64)

    def detach(self):
        return self

    def flatten(self):
        return Tensor(self.values.ravel())

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        return Tensor(self.values[at])

    def float(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Network:
    """A network with random weights."""

    def __init__(self, seed):
        self.weight = Tensor(np.random.default_rng(seed).normal(size=(50, 60)))

    def named_parameters(self):
        yield "layer.weight", self.weight
