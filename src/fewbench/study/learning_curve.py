"""How a method's error depends on the number of source models."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fewbench._types import FloatArray
from fewbench.study.backtest import Backtest
from fewbench.study.cell import Cell
from fewbench.study.inference import Figure, Paired, TwoWay
from fewbench.study.splits import drawn_sources

SIZES = (5, 20, 80, 320)
MUCH = 0.6
"""Sizes up to this share of all sources are run, so that steps are large enough to see."""
WORTH = 5
"""A smaller part of the error, in percent, is not worth more sources."""

RunCells = Callable[[Sequence[tuple[Backtest, list[Cell]]]], None]


@dataclass(frozen=True)
class LearningCurve:
    """Error by number of sources, at one number of items.

    Attributes
    ----------
    method : str
    items : int
    sources : tuple of int
        Numbers of sources, the last one is all.
    errors : tuple of Figure
        Mean absolute errors: of a plan in [0, 1], of a comparison on the scale of the scores.
    gain : Paired or None
        The error with all sources less that with the number before, on the same targets.
    """

    method: str
    items: int
    sources: tuple[int, ...]
    errors: tuple[Figure, ...]
    gain: Paired | None

    @classmethod
    def from_errors(
        cls, method: str, items: int, errors: Mapping[int, FloatArray], resampled: TwoWay
    ) -> "LearningCurve":
        """Return the curve of errors by number of sources, in order, as `TwoWay.parts`."""
        gain = None
        if len(errors) > 1 and resampled.has_intervals:
            fewer, most = list(errors)[-2:]
            gain = resampled.compare(errors[most], errors[fewer])
        figures = (
            resampled.figure(resampled.mean(values), ratio=True, least=0.0)
            for values in errors.values()
        )
        return cls(method, items, tuple(errors), tuple(figures), gain)

    @property
    def says(self) -> str:
        """Whether more sources would help, in a sentence."""
        if self.gain is None or math.isnan(self.gain.low):
            return "There are too few source models to say whether more of them would help."
        all_of_them, fewer = self.sources[-1], self.sources[-2]
        base = max(self.errors[-2].value, 1e-12)
        change, low, high = (
            round(100 * value / base)
            for value in (self.gain.difference, self.gain.low, self.gain.high)
        )
        steps = f"from {fewer} to {all_of_them} source models"
        if self.gain.high < 0 and change <= -WORTH:
            return f"More source models would help: {steps}, the error falls by {-change}%."
        if self.gain.low > 0:
            return f"More source models would not help: {steps}, the error grows by {change}%."
        # The interval says how much a doubling or so could gain at most.
        ends = f"(90% interval: {low:+d}% to {high:+d}%)"
        if low > -2 * WORTH:
            return (
                f"More source models would hardly help: {steps}, the error changes by "
                f"{change:+d}% {ends}."
            )
        return (
            f"It is not clear whether more source models would help: {steps}, the error changes "
            f"by {change:+d}% {ends}."
        )


def learning_curve(backtest: Backtest, method: str, items: int, run: RunCells) -> LearningCurve:
    """Backtest a method with random parts of the sources, on the same targets.

    Parameters
    ----------
    backtest : Backtest
        The regime.
    method : str
    items : int
        Number of items.
    run : callable
        Runs the cells of several backtests and gives them the results.
    """
    most = min(len(split.sources) for split in backtest.splits)
    sizes = [size for size in SIZES if size <= MUCH * most]
    parts = {
        size: Backtest(
            backtest.scores,
            replace(backtest.settings, sources=size),
            *(backtest.repeats, backtest.seed, backtest.level, backtest.margin),
            splits=[
                replace(split, sources=drawn_sources(split.sources, size, backtest.seed, repeat))
                for repeat, split in zip(backtest.repeats, backtest.splits, strict=True)
            ],
        )
        for size in sizes
    } | {most: backtest}
    run([(part, part.cells([method], [items])) for part in parts.values()])
    by_sources = {
        size: errors
        for size, part in parts.items()
        if (errors := part.parts(method, items, "error")) is not None
    }
    curve = LearningCurve.from_errors(method, items, by_sources, backtest.resampled)
    # Without all sources, no gain by them.
    return curve if most in by_sources else replace(curve, gain=None)
