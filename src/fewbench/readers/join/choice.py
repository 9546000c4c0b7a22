"""Which metric and which filter of each task: asked, never guessed."""

from collections.abc import Iterable, Mapping

from fewbench._names import some
from fewbench.errors import ReaderError


class Preference:
    """What the user named, and the tasks for which that does not decide.

    Parameters
    ----------
    option : str
        The option's name, "metric" or "filter".
    named : str, optional
        Names in order of preference, separated by commas: the first that a task has is taken. A
        task that has only one takes that.
    of_task : mapping of str to str, optional
        Task → its name, where that is known: it goes before the names.

    Examples
    --------
    >>> metric = Preference("metric", "acc")
    >>> metric.of("mmlu", ["acc_norm", "acc"]), metric.of("gsm8k", ["exact_match"])
    ('acc', 'exact_match')
    """

    def __init__(
        self, option: str, named: str | None = None, of_task: Mapping[str, str] | None = None
    ) -> None:
        self.option = option
        self.named = [name.strip() for name in (named or "").split(",") if name.strip()]
        self._of_task = {} if self.named else of_task or {}
        self._met: dict[str, None] = {}
        self._open: list[tuple[str, list[str]]] = []

    def of(self, task: str, candidates: Iterable[str]) -> str | None:
        """Return the one to take, None if that is not decided (see `require`)."""
        there = list(dict.fromkeys(candidates))
        self._met |= dict.fromkeys(there)
        fitting = [name for name in self.names_for(task) if name in there]
        if fitting or len(there) == 1:
            return (fitting or there)[0]
        self._open.append((task, there))
        return None

    def names_for(self, task: str) -> list[str]:
        """Return what is wanted of a task, best first."""
        return [self._of_task[task]] if task in self._of_task else self.named

    @property
    def unknown(self) -> str:
        """What is wrong if none of the names is anywhere, empty if one is."""
        if not self.named or self._met.keys() & set(self.named):
            return ""
        there = some(list(self._met), most=8)
        return f"no task has the {self.option} {some(self.named)}; there is {there}"

    @property
    def question(self) -> str:
        """What is left to ask, empty if nothing is."""
        if not self._open:
            return ""
        listed = "; ".join(
            f"task {task!r} has {', '.join(map(repr, names))}" for task, names in self._open[:3]
        )
        more = f" and {len(self._open) - 3} more tasks" if len(self._open) > 3 else ""
        return f"which {self.option}? {listed}{more}"

    @property
    def advice(self) -> str:
        """An option that would answer the question, by the first name of every open task."""
        known = [name for name in self.named if name in self._met]
        first = dict.fromkeys([*known, *(names[0] for _, names in self._open)])
        return f"--{self.option} {','.join(first)}"


def require(*preferences: Preference) -> None:
    """Raise ReaderError if a task was left open, with all that must be named."""
    for preference in preferences:
        if preference.unknown:
            raise ReaderError(preference.unknown, hint="the names are those in the logs")
    left = [preference for preference in preferences if preference.question]
    if left:
        raise ReaderError(
            "; ".join(preference.question for preference in left),
            hint=f"such as {' '.join(preference.advice for preference in left)}; for each task the "
            "first name that it has is taken",
        )
