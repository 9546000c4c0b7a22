"""Which metric and which filter of each task: asked, never guessed."""

from collections.abc import Iterable

from fewbench._names import some
from fewbench.errors import ReaderError


class Preference:
    """What the user named, and the tasks for which that does not decide.

    Parameters
    ----------
    option : str
        The option's name, "metric" or "filter".
    named : str, optional
        Names in order of preference, separated by commas: the first that a task has is taken.

    Examples
    --------
    >>> metric = Preference("metric", "acc,exact_match")
    >>> metric.of("mmlu", ["acc_norm", "acc"]), metric.of("gsm8k", ["exact_match"])
    ('acc', 'exact_match')
    """

    def __init__(self, option: str, named: str | None = None) -> None:
        self.option = option
        self.named = [name.strip() for name in (named or "").split(",") if name.strip()]
        self._open: list[tuple[str, list[str]]] = []

    def of(self, task: str, candidates: Iterable[str]) -> str | None:
        """Return the one to take, None if that is not decided (see `require`)."""
        there = list(dict.fromkeys(candidates))
        fitting = [name for name in self.named if name in there]
        if fitting:
            return fitting[0]
        if len(there) == 1 and not self.named:
            return there[0]
        self._open.append((task, there))
        return None

    def require(self) -> None:
        """Raise ReaderError if a task was left open, naming the tasks and what they have."""
        if not self._open:
            return
        listed = "; ".join(f"{task!r} has {', '.join(names)}" for task, names in self._open[:3])
        more = f" and {len(self._open) - 3} more tasks" if len(self._open) > 3 else ""
        every = list(dict.fromkeys(name for _, names in self._open for name in names))
        if self.named:
            raise ReaderError(
                f"no {self.option} {some(self.named)} for some tasks: {listed}{more}",
                hint=f"name one for each task, in order of preference: --{self.option} "
                f"{','.join([*self.named, every[0]])}",
            )
        raise ReaderError(
            f"which {self.option}? {listed}{more}",
            hint=f"--{self.option} {every[0]}; several names, separated by commas, are tried "
            "in order",
        )
