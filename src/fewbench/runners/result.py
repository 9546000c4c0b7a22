"""What a run found, cost and saved."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fewbench._files import written_whole
from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._warned import in_cell
from fewbench.evaluation import Estimate, Estimates, Evaluation
from fewbench.evaluation.costs import Cost
from fewbench.scores import Scale
from fewbench.scores.costs import amount
from fewbench.show.page import Chart, Page, Section, Shown, Table

RESULT = "result.json"
"""Name of a run's result in its folder."""


class Spent(Frozen):
    """What a run has used so far, including earlier parts of it.

    Attributes
    ----------
    cost : float
        As the runner reports it; 0 if it reports none.
    tokens : int
    seconds : float
        Wall time.
    own_seconds : float
        The part of the wall time that fewbench needed itself.
    """

    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    own_seconds: float = 0.0

    @property
    def model_seconds(self) -> float:
        """The rest of the wall time: the model's."""
        return max(0.0, self.seconds - self.own_seconds)


class Progress(Frozen):
    """How far a target is.

    Attributes
    ----------
    target : str
    scale : Scale
        The scale of the scores.
    answered, budget, total : int
        Items answered, the most that will be, and all items of the benchmark; each as often as it
        is run (`Stop.repeats`).
    score : float, optional
        Estimated from the answers so far.
    estimate : Estimate, optional
        The same, with its interval.
    spent : Spent
    cost : Cost, optional
        None if no cost is known.
    """

    target: str
    scale: Scale
    answered: int
    budget: int
    total: int
    score: float | None
    estimate: Estimate | None
    spent: Spent
    cost: Cost | None = None


class TargetResult(Frozen):
    """What a run found for one target.

    Attributes
    ----------
    estimate : Estimate, optional
        None without any answer.
    items_run, items_total : int
    failed : dict of str to str
        Items that were skipped, with the last reason.
    own_ids : dict of str to str
        The ids that these items have as samples of Inspect.
    cost, tokens : float, int
        Spent: as the runner reports, or the items' costs.
    full_cost, full_tokens : float, int
        About what all items would have cost (`Cost.full`), by the mean of those that were run.
    unit : str
        Unit of the costs, if known.
    limit : str, optional
        The limit that ended it, in words.
    """

    estimate: Estimate | None
    items_run: int
    items_total: int
    failed: dict[str, str]
    own_ids: dict[str, str] = Field(default_factory=dict)
    cost: float
    tokens: int
    full_cost: float
    full_tokens: int
    unit: str = ""
    limit: str | None = None


class RunResult(Shown, Frozen):
    """What a run found, cost and saved.

    Attributes
    ----------
    targets : dict of str to TargetResult
    spent : Spent
        Costs, tokens and time of all targets together.
    stopped : str, optional
        Why the run ended early, or None if it ran all its items.
    is_failed : bool
        Whether that was a failure of the model or its runner.
    notes : tuple of str
    reused : tuple of str
        Answers that came from an earlier run in the folder, in words.
    is_resumed : bool
        Whether the folder had answers before, so that what was spent is that of several runs.
    folder : str, optional
        Folder of the evaluation.
    """

    targets: dict[str, TargetResult]
    spent: Spent
    stopped: str | None
    is_failed: bool = False
    notes: tuple[str, ...]
    reused: tuple[str, ...] = ()
    is_resumed: bool = False
    folder: str | None

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        estimates: Estimates | None,
        *,
        failed: dict[str, dict[str, str]],
        spent: dict[str, Spent],
        limited: dict[str, str],
        stopped: str | None,
        is_failed: bool,
        notes: list[str],
        reused: list[str],
        is_resumed: bool,
        folder: Path | None,
    ) -> "RunResult":
        """Return the result of the targets of an evaluation on which something was spent."""
        n_items = evaluation.scores.n_items
        targets = {}
        for name, used in spent.items():
            run = len(evaluation.record.answered(name))
            scale = n_items / run if run else 0.0
            cost = evaluation.cost(name)
            targets[name] = TargetResult(
                estimate=None if estimates is None else estimates.get(name),
                items_run=run,
                items_total=n_items,
                failed=failed[name],
                own_ids=evaluation.scores.own_ids(failed[name]),
                cost=used.cost if cost is None else cost.spent,
                tokens=used.tokens,
                full_cost=0.0 if cost is None else cost.full,
                full_tokens=round(used.tokens * scale),
                unit=evaluation.stop.unit,
                limit=limited.get(name),
            )
        whole = next(iter(spent.values())).model_copy(
            update={
                "cost": sum(target.cost for target in targets.values()),
                "tokens": sum(each.tokens for each in spent.values()),
            }
        )
        return cls(
            targets=targets,
            spent=whole,
            stopped=stopped or _limits(targets),
            is_failed=is_failed,
            notes=tuple(notes),
            reused=tuple(reused),
            is_resumed=is_resumed,
            folder=None if folder is None else str(folder),
        )

    @classmethod
    def of_folder(cls, folder: str | Path, estimates: Estimates) -> "RunResult | None":
        """Return the result that a run left in a folder, with the estimates that hold now.

        None if there is none, or more was answered since, so that it says too little.
        """
        try:
            result = cls.model_validate_json((Path(folder) / RESULT).read_bytes())
        except (OSError, ValidationError):
            return None
        now = {name: estimate.items_run for name, estimate in estimates.items()}
        if any(name not in result.targets or result.targets[name].items_run != n
               for name, n in now.items()):  # fmt: skip
            return None
        kept = {
            name: target.model_copy(update={"estimate": estimates[name]})
            for name, target in result.targets.items()
            if name in estimates
        }
        again = result._of_targets(kept).model_copy(update={"reused": ()})  # of that command
        if len(result.targets) > 1:  # the time was that of one command, maybe for another target
            spent = result.spent.model_copy(update={"seconds": 0.0})
            again = again.model_copy(update={"spent": spent})
        return again

    def with_earlier(self, path: Path) -> "RunResult":
        """Return this result with the targets of an earlier one that it does not have."""
        try:
            earlier = type(self).model_validate_json(path.read_bytes()).targets
        except (OSError, ValidationError):
            return self
        return self._of_targets({**earlier, **self.targets})

    def _of_targets(self, targets: dict[str, TargetResult]) -> "RunResult":
        """Return this result of other targets, with their limits."""
        changes: dict[str, Any] = {"targets": targets}
        if self.stopped == _limits(self.targets):  # nothing else ended the run
            changes["stopped"] = _limits(targets)
        return self.model_copy(update=changes)

    @property
    def estimates(self) -> Estimates:
        """The estimates of all targets with answers."""
        estimates = {name: target.estimate for name, target in self.targets.items()}
        return Estimates(
            {name: estimate for name, estimate in estimates.items() if estimate is not None}
        )

    @property
    def warnings(self) -> list[str]:
        """Old answers, those of the estimates, and why targets have none."""
        why = self.stopped or "it has no answers"
        lacking = [name for name, target in self.targets.items() if target.estimate is None]
        missing = [f"no estimate of {name}: {why}" for name in lacking]
        return [*self.reused, *self.estimates.warnings, *missing]

    @property
    def score(self) -> float:
        """The estimated full score of the only target; EvaluationError unless there is one."""
        return self.estimates.score

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per target: score, interval, level, items, cost, saved cost, warnings."""
        rows = {}
        for name, target in self.targets.items():
            estimate = target.estimate
            rows[name] = {
                "score": None if estimate is None else estimate.score,
                "low": None if estimate is None else estimate.interval.low,
                "high": None if estimate is None else estimate.interval.high,
                "level": None if estimate is None else estimate.level,
                "items_run": target.items_run,
                "items_total": target.items_total,
                "failed": len(target.failed),
                "cost": target.cost,
                "saved_cost": target.full_cost - target.cost,
                "tokens": target.tokens,
                "saved_tokens": target.full_tokens - target.tokens,
                "warnings": in_cell(
                    [*self.reused, *([] if estimate is None else estimate.warnings)]
                ),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("target")

    def page(self, evaluation: Evaluation | None = None, **shown: Any) -> Page:
        """Return the page of the estimates with what the run cost and saved."""
        page = self.estimates.page(evaluation, **shown)
        head = [("Target", False), ("Items run", True), ("Items saved", True)]
        every = self.targets.values()
        costs, tokens = any(target.cost for target in every), any(target.tokens for target in every)
        head += [("Cost", True), ("In full", True), ("Cost saved", True)] if costs else []
        head += [("Tokens", True), ("In full", True), ("Tokens saved", True)] if tokens else []
        rows, lines, reasons = [], [], []
        for name, of_target in self.targets.items():
            own_ids = of_target.own_ids
            whys = {own_ids.get(item, item): why for item, why in of_target.failed.items()}
            reasons += [[name, item, why] for item, why in whys.items()]
            if whys:
                failed = f"{counted(len(whys), 'item')} failed and skipped: {some(whys)}"
                first = "The first error" if len(whys) > 1 else "Its error"
                lines.append(
                    f"{name}: {failed}. {first}: {next(iter(whys.values()))}. To run "
                    f"{'these items' if len(whys) > 1 else 'this item'} again, pass "
                    "--retry-skipped (in Python retry_skipped=True)"
                )
            if not of_target.items_run:
                continue  # nothing was saved where nothing ran
            row = [
                name,
                f"{of_target.items_run:,}",
                f"{of_target.items_total - of_target.items_run:,}",
            ]
            if costs:
                spent = (of_target.cost, of_target.full_cost, of_target.full_cost - of_target.cost)
                row += [amount(value, of_target.unit) for value in spent]
            if tokens:
                used = (
                    of_target.tokens,
                    of_target.full_tokens,
                    of_target.full_tokens - of_target.tokens,
                )
                row += [f"{value:,}" for value in used]
            rows.append(row)
        time = self.spent
        runs = "All runs in this folder" if self.is_resumed else "The run"
        text = (
            f"{runs} took {time.seconds:,.1f} s: the model {time.model_seconds:,.1f} s, "
            f"fewbench {time.own_seconds:,.1f} s."
            if time.seconds
            else ""
        )
        title = "What it cost and saved"
        tables = [Table(title, head, rows)] if rows else []
        if reasons:
            names = [("Target", False), ("Item", False), ("Reason", False)]
            tables.append(Table("Failed items", names, reasons, "an item", "Failed items"))
        notes = []
        if costs or tokens:
            notes = ["In full: the items' costs, or projected from the mean of those that ran."]
        cost = Section("cost", title, notes, text, tables=tables, lines=lines)
        section = Section("notes", "Notes of the run", lines=self.notes, detail=True)
        more = [cost, section] if self.notes else [cost]
        is_planned = self.stopped == _limits(self.targets)  # the limits are those of the user
        how = "Ended at its limit" if is_planned else "Stopped early"
        stopped = [] if self.stopped is None else [f"{how}: {self.stopped}."]
        return replace(
            page,
            lesser=[*stopped, *page.lesser],
            warnings=[*self.reused, *page.warnings],
            sections=[*page.sections, *more],
        )

    def _charts(self) -> list[tuple[str, str, Chart]]:
        return self.estimates._charts()

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON; an existing file is replaced."""
        with written_whole(Path(path)) as temporary:
            temporary.write_text(self.to_json() + "\n", encoding="utf-8")
        return Path(path)


def _limits(targets: Mapping[str, TargetResult]) -> str | None:
    """Return the limits that ended single targets, in words."""
    limits = [f"{name}: {target.limit}" for name, target in targets.items() if target.limit]
    return "; ".join(limits) or None
