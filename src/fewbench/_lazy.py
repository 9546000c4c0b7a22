"""pandas, imported when a name of it is first used: it takes a quarter of a second."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pandas
else:

    class _Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self.__name__), name)

    pandas = _Lazy("pandas")
