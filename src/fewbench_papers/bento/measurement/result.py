"""What a measurement costs and what came of it, as plain values and as pages."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fewbench.show.page import Page, Section, Shown, Table
from fewbench.support import as_note, counted, quoted
from fewbench.support import pandas as pd
from fewbench_papers.bento.measurement.answers import MeasuredAnswers, guesses, notes_on
from fewbench_papers.bento.measurement.cost import (
    Costs,
    Prices,
    cost_of,
    example,
    overview,
    repaid_after,
)
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.model import HarnessModel
from fewbench_papers.bento.measurement.templates import TEMPLATES
from fewbench_papers.bento.transferability import MATRIX, Transferability

KEEP = 3  # tasks of the proposed selection


@dataclass(frozen=True)
class MeasurementRun:
    """What one run asked.

    Attributes
    ----------
    asked : int
        New answers.
    estimated : int
        Answers whose tokens are estimated, because the model has no tokenizer.
    seconds : float
    stopped : str or None
        The limit that ended the run early, in words.
    """

    asked: int
    estimated: int
    seconds: float
    stopped: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Shown):
    """A measurement of transferability: what it asks and costs, and what came of it.

    Attributes
    ----------
    folder : Path or None
        None if only the cost is asked for.
    model : HarnessModel
    answers : MeasuredAnswers
        Complete unless the run stopped at a limit.
    prices : Prices
    run : MeasurementRun or None
        What this run asked.
    partial : bool
        Whether the matrix is made of the answers so far.
    matrix : Transferability or None
        None unless all is answered, or `partial`.
    """

    folder: Path | None
    model: HarnessModel
    answers: MeasuredAnswers
    prices: Prices
    run: MeasurementRun | None = None
    partial: bool = False
    matrix: Transferability | None = None

    @property
    def exit_code(self) -> int:
        """1 if a limit stopped the run."""
        return int(self.run is not None and self.matrix is None)

    @cached_property
    def cost(self) -> Costs:
        """The expected cost of the design, answered requests included; tokens are estimated."""
        return cost_of(self.answers.design, self.prices, self.model.one_by_one)

    @property
    def left(self) -> str:
        """What is left of a measurement, in one line."""
        done, n_requests = self.answers.n_done, len(self.answers.design)
        return (
            f"answered already: {done:,} of {n_requests:,}; about "
            f"{rounded(self.cost.tokens * (1 - done / n_requests))} tokens are left"
        )

    @cached_property
    def notes(self) -> list[str]:
        """Notes on the draws and answers that affect the matrix."""
        return notes_on(self.answers, partial=self.partial)

    @property
    def spent(self) -> float | None:
        """Cost of all tokens so far, or None without prices."""
        return self.prices.cost(self.answers.prompt, self.answers.completion)

    @property
    def about(self) -> dict[str, str]:
        """Facts that are kept with the matrix."""
        design = self.answers.design
        drawn = [
            len(design.scored(at, seed)) for at in design.targets for seed in range(design.seeds)
        ]
        return {
            **{name: str(value) for name, value in settings(design, self.model).items()},
            **self.model.facts(design.metric),
            "date": datetime.now(UTC).date().isoformat(),
            "answers": f"{self.answers.n_done} of {len(design)}",
            "most questions": str(max(drawn)),
            "notes": "\n".join(self.notes),
            "guesses": "\n".join(guesses(self.answers)),
        }

    @cached_property
    def strongest(self) -> tuple[str, float]:
        """The source with the highest mean over its targets, and that mean."""
        assert self.matrix is not None
        values = self.matrix.values
        scored = np.isfinite(values)
        sums = np.where(scored, values, 0.0).sum(axis=(0, 2))
        means = np.where(scored.any(axis=(0, 2)), sums, -np.inf) / np.maximum(
            scored.sum(axis=(0, 2)), 1
        )
        best = int(means.argmax())
        return self.matrix.tasks[best], float(means[best])

    @property
    def mean(self) -> float:
        """Mean score over all measured entries."""
        assert self.matrix is not None
        return float(np.nanmean(self.matrix.values))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; those of the expected cost until the first request."""
        answers, design = self.answers, self.answers.design
        values: dict[str, Any] = {
            **settings(design, self.model),
            "complete": answers.complete,
            "answers": answers.n_done,
            "asked": len(design),
            "tokens": {"prompt": answers.prompt, "completion": answers.completion},
            "spent": self.spent,
            "run": None if self.run is None else asdict(self.run),
            "notes": self.notes,
        }
        if self.matrix is not None and self.folder is not None:
            source, mean = self.strongest
            values |= {"matrix": str(self.folder / MATRIX), "mean": self.mean}
            values |= {"strongest_source": source, "strongest_mean": mean}
        if not self.is_asked:
            values["cost"] = self.cost.to_dict()
            values["of_tasks"] = [asdict(task) for task in overview(design)]
            values["example"] = example(design)
        return values

    @property
    def is_asked(self) -> bool:
        """Whether anything came of it: a run or a matrix. Until then it shows what it costs."""
        return self.run is not None or self.matrix is not None

    def to_frame(self) -> "pd.DataFrame":
        """Return the mean scores: one row per seed and source, one column per target.

        Before the first request, one row per task: how its questions are used.
        """
        design, means = self.answers.design, self.answers.means()
        if not self.is_asked:
            return pd.DataFrame(map(asdict, overview(design))).set_index("name")
        index = pd.MultiIndex.from_product([range(design.seeds), design.names])
        index.names = ["seed", "source"]
        targets = [design.names[at] for at in design.targets]
        return pd.DataFrame(means.reshape(len(index), -1), index, targets)

    def page(self) -> Page:
        """Return what was answered and the strongest source, or before the first request, the
        cost.
        """
        answers, design = self.answers, self.answers.design
        size = f"{counted(len(design.tasks), 'source')} × {counted(len(design.targets), 'target')}"
        seeds, further = counted(design.seeds, "seed"), list[str]()
        if not self.is_asked:
            cap = "all questions"
            if design.questions is not None:
                cap = f"up to {counted(design.questions, 'question')}"
            title, answer = "Cost of a measurement", f"{size}, {design.metric}"
            lesser = f"{seeds}, {counted(design.exemplars, 'exemplar')}, {cap} per target and seed."
            sections = self._cost_sections()
        else:
            title = f"Transferability, measured on {self.model.name}"
            answer = f"{answers.n_done:,} of {len(design):,} answers"
            lesser, sections = f"{size}, {seeds}.", [self._run_section()]
            if answers.complete and (keep := kept_tasks(len(design.tasks))):
                further.append(f"fewbench tasks select {quoted(self.folder)} -k {keep}")
        return Page(
            "transfer measure",
            title,
            f"{self.model.name}: {answer}",
            [lesser],
            sections=sections,
            next=further,
        )

    def _cost_sections(self) -> list[Section]:
        """Return the cost, the tasks and an example prompt."""
        design, cost = self.answers.design, self.cost
        facts = {
            "Prompts": f"{cost.prompts:,}",
            f"Full passes over {counted(cost.benchmark, 'question')}": rounded(cost.passes),
            "Tokens, about": rounded(cost.tokens),
            "Repeated tokens, about": rounded(cost.shared_tokens),
        }
        if cost.requests != cost.prompts:
            facts["Options, one by one"] = f"{cost.requests:,}"
        if cost.money is not None:
            facts["Price, about"] = f"{cost.money:,.2f}"
        notes = [
            "Tokens are estimated as bytes / 4. Repeated tokens are the same beginning as the "
            "previous prompt; servers with prefix caching do not process them again"
            + (
                ""
                if design.metric == "exact-match"
                else " (vLLM does, if a request asks for the log-probabilities of the prompt)"
            )
            + "."
        ]
        if keep := kept_tasks(len(design.tasks)):
            models = counted(repaid_after(design, keep), "evaluated model")
            notes.append(
                f"Running {keep} of {len(design.tasks)} tasks saves more than this after {models}."
            )
        if self.answers.n_done:
            notes.append(f"{self.left[0].upper()}{self.left[1:]}.")
        uses = [
            [
                *(task.name, str(task.questions), str(task.pool), str(task.aside)),
                *(str(task.left_out), "yes" if task.target else "no"),
            ]
            for task in overview(design)
        ]
        columns = ("Questions", "Pool", "Set aside", "Left out", "Target")
        use = Table("Tasks", [("Task", False), *((name, True) for name in columns)], uses)
        return [
            Section("cost", "Cost", notes, facts=facts),
            Section("tasks", "Tasks", tables=[use], lines=[*map(as_note, design.notes)]),
            Section("prompt", "Example prompt", lines=example(design).split("\n")),
        ]

    def _run_section(self) -> Section:
        """Return what the answers took, and the strongest source."""
        answers, run = self.answers, self.run
        tokens = f"{answers.prompt:,} of prompts, {answers.completion:,} written"
        if run is not None and run.estimated:
            tokens += " (estimated: the model has no tokenizer)"
        if self.spent is not None:
            tokens += f", price {self.spent:,.2f}"
        facts = {"Tokens": tokens}
        if run is not None:
            facts["This run"] = f"{counted(run.asked, 'answer')}, {run.seconds:,.0f} s"
        lines = [*map(as_note, self.notes)]
        if self.matrix is not None and self.folder is not None:
            source, mean = self.strongest
            metric = answers.design.metric
            name = "log-probability" if metric == "loss" else metric
            facts[f"Mean {name}"] = f"{self.mean:.3f}"
            facts["Strongest source"] = f"{source} ({mean:.3f} over its targets)"
            part = "" if answers.complete else " from the answers so far"
            lines.append(f"wrote {self.folder / MATRIX}{part}")
        elif run is not None:
            lines.append(
                f"stopped: {run.stopped}; run the command again with a higher limit to continue"
            )
        return Section("run", "Measurement", lines=lines, facts=facts)


def settings(design: Design, model: HarnessModel) -> dict[str, str | int | None]:
    """Return what a measurement asks, as plain values."""
    names = [name for name, template in TEMPLATES.items() if template == design.template]
    return {
        "model": model.name,
        "metric": design.metric,
        "template": names[0] if names else "own",
        "tasks": len(design.tasks),
        "columns": len(design.targets),
        "seeds": design.seeds,
        "exemplars": design.exemplars,
        "questions": design.questions,
        "seed": design.seed,
    }


def kept_tasks(tasks: int) -> int:
    """Return how many tasks to propose; 0 if there is nothing to choose.

    Examples
    --------
    >>> [kept_tasks(tasks) for tasks in (2, 3, 4, 57)]
    [0, 2, 3, 3]
    """
    return min(KEEP, tasks - 1) if tasks > 2 else 0


def rounded(number: float) -> str:
    """Return a number with three significant digits, large ones in millions or billions.

    Examples
    --------
    >>> rounded(571.3), rounded(2.25), rounded(8_004_000), rounded(31_234)
    ('571', '2.25', '8.00 million', '31,200')
    """
    for size, word in ((1e9, " billion"), (1e6, " million")):
        if number >= size:
            return f"{rounded(number / size)}{word}"
    if number >= 100:
        digits = max(0, len(str(int(number))) - 3)
        return f"{round(number, -digits):,.0f}"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"
