"""What packages add to fewbench through entry points, and tables that hold it beside our own.

The groups are `fewbench.methods`, `fewbench.readers`, `fewbench.sources`, `fewbench.runners` and
`fewbench.commands`. An entry is one thing, by the name of the entry, or a mapping of several by
theirs. Nothing is loaded at import: a table asks for what packages add when a name is not among
our own, or when all names are listed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fewbench.errors import FewbenchError, first_line

T = TypeVar("T")


class Added(NamedTuple):
    """Something that a package adds, and the entry point that names it."""

    name: str
    thing: Any
    entry: Any

    def of(self, name: str, thing: Any) -> "Added":
        """Return something else of the same entry."""
        return self._replace(name=name, thing=thing)

    @property
    def package(self) -> str:
        """The name of the package; to read it takes time."""
        return str(self.entry.dist.name if self.entry.dist else self.entry.module)

    def refused(self, why: str) -> FewbenchError:
        """Return the error for something that cannot be used."""
        return FewbenchError(
            f"the package {self.package} adds {self.name!r}: {why}",
            hint=f"update or uninstall {self.package}",
        )


def sources(group: str) -> Iterator[tuple[str, list[Path]]]:
    """Yield each package that adds to a group, with its version, and its files, without importing.

    Two states of a package that is worked on have the same version.
    """
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for entry in entry_points(group=f"fewbench.{group}"):
        spec = find_spec(entry.module.partition(".")[0])
        origin = Path(spec.origin) if spec is not None and spec.origin else None
        is_folder = origin is not None and origin.name == "__init__.py"
        files = sorted(origin.parent.rglob("*.py")) if origin and is_folder else [origin]
        named = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
        yield named, [file for file in files if file is not None]


@cache
def added(group: str) -> tuple[Added, ...]:
    """Return what packages add to a group, in the order of their entries.

    FewbenchError names the package if an entry cannot be loaded.
    """
    from importlib.metadata import entry_points  # takes a quarter of the start of a command

    things: list[Added] = []
    for entry in entry_points(group=f"fewbench.{group}"):
        try:
            thing = entry.load()
        except Exception as error:
            why = f"{entry.value} cannot be loaded: {type(error).__name__}: {first_line(error)}"
            raise Added(entry.name, None, entry).refused(why) from error
        several = thing if isinstance(thing, Mapping) else {entry.name: thing}
        things += [Added(name, each, entry) for name, each in several.items()]
    return tuple(things)


class Registry(MutableMapping[str, T]):
    """Things by name: our own, then those of packages, which are loaded when they are needed.

    Parameters
    ----------
    own : mapping
    more : callable
        Returns what packages add.

    Examples
    --------
    >>> registry = Registry({"ours": 1}, lambda: [Added("theirs", 2, None)])
    >>> "ours" in registry, registry["theirs"], list(registry)
    (True, 2, ['ours', 'theirs'])
    """

    def __init__(self, own: Mapping[str, T], more: Callable[[], Iterable[Added]]) -> None:
        self._things = dict(own)
        self._more = more
        self._is_whole = False

    def _all(self) -> dict[str, T]:
        if not self._is_whole:
            whole = dict(self._things)
            for one in self._more():
                if one.name in whole:
                    raise one.refused("this name is taken")
                whole[one.name] = one.thing
            self._things, self._is_whole = whole, True
        return self._things

    def __getitem__(self, name: str) -> T:
        return self._things[name] if name in self._things else self._all()[name]

    def __setitem__(self, name: str, thing: T) -> None:
        self._things[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
