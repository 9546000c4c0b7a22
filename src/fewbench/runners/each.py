"""Run each target by a runner of its own, such as one for each model of lm-eval."""

from collections.abc import Iterable, Mapping, Sequence

from fewbench._names import some
from fewbench.errors import RunError
from fewbench.runners.driving import Answered, Runner
from fewbench.runners.result import RunResult
from fewbench.scores import Benchmark, Scores


class EachRunner(Runner):
    """Runs targets by a runner each; the model of one target is loaded at a time.

    Parameters
    ----------
    runners : mapping of target to Runner
        Runners of one kind.
    """

    def __init__(self, runners: Mapping[str, Runner]) -> None:
        self._runners = dict(runners)
        first = next(iter(self._runners.values()))
        self.name, self.reports, self.batch = first.name, first.reports, first.batch

    def benchmark(self) -> Benchmark | None:
        """Return the items of the runners; RunError if they have different ones."""
        by_target = {name: runner.benchmark() for name, runner in self._runners.items()}
        (first, benchmark), *others = by_target.items()
        for name, other in others:
            if benchmark is None or other is None:
                continue
            if [*benchmark.item_ids] != [*other.item_ids]:
                raise RunError(
                    f"{some([first, name])} have different items",
                    hint="let their arguments differ in the model or the prompt, not in the tasks",
                    kind="conflict",
                )
        return benchmark

    def model_facts(self, target: str) -> Mapping[str, str]:
        """Return how a target is run, and what can be seen of its model."""
        runner = self._runners[target]
        return {**runner.facts, **runner.model_facts(target)}

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Check all targets."""
        return _each(
            note for name in targets for note in self._runners[name].prepare(scores, [name])
        )

    def check_items(self, items: Sequence[str]) -> list[str]:
        """Check the items by each runner, one after another."""
        notes = []
        for runner in self._runners.values():
            notes += runner.check_items(items)
            runner.release()
        return _each(notes)

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Run a target by its runner; the models of the others are released first."""
        for name, other in self._runners.items():
            if name != target:
                other.release()
        runner = self._runners[target]
        runner.on_answers, runner.repeat = self.on_answers, self.repeat
        return runner.answer(target, items)

    def finish(self, result: RunResult) -> Sequence[str]:
        """Let each runner write what it writes of its target."""
        notes: list[str] = []
        for name, runner in self._runners.items():
            targets = {name: result.targets[name]} if name in result.targets else {}
            notes += runner.finish(result.model_copy(update={"targets": targets}))
        return _each(notes)

    def close(self) -> None:
        """Close all runners."""
        for runner in self._runners.values():
            runner.close()


def _each(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))
