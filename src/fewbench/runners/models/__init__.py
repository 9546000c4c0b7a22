"""Language models: behind a server with OpenAI's interface, or local."""

from fewbench.runners.models.endpoint import Endpoint
from fewbench.runners.models.local import LocalModel
from fewbench.runners.models.model import (
    Chosen,
    Model,
    Read,
    TooLong,
    TryAgain,
    Usage,
    Written,
)

__all__ = [
    "Chosen",
    "Endpoint",
    "LocalModel",
    "Model",
    "Read",
    "TooLong",
    "TryAgain",
    "Usage",
    "Written",
]
