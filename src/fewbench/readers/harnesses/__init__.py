"""The harnesses whose result files fewbench reads: our own, and those that packages add."""

from collections.abc import Iterator

from fewbench._plugins import Added, Registry, added
from fewbench.readers.harness import Harness
from fewbench.readers.harnesses.inspect_logs import InspectLogs
from fewbench.readers.harnesses.lm_eval import LmEval

OWN: tuple[Harness, ...] = (LmEval(), InspectLogs())


def _added() -> Iterator[Added]:
    """Yield the readers that packages add, as classes or made."""
    for one in added("readers"):
        reader = one.thing() if isinstance(one.thing, type) else one.thing
        lacks = [name for name in ("name", "files", "find", "read") if not hasattr(reader, name)]
        if lacks or reader.name != one.name:
            raise one.refused(f"a reader without {lacks[0]}" if lacks else "its name differs")
        yield one.of(one.name, reader)


HARNESSES: Registry[Harness] = Registry({harness.name: harness for harness in OWN}, _added)
"""Readers by name, in the order in which files are offered to them."""
