"""Run chosen items in lm-eval: the model is loaded once, documents and prompts are checked first.

Every document that may be run is found by its hash, wherever lm-eval has it now. Its prompt is
compared with the prompt of the source models before the model is asked. Few-shot examples are
those of a whole run (`fewbench.runners.lm_eval_tasks`). Answers are logged as lm-eval logs them,
then read as any log is, with the same checks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from fewbench._names import counted, some
from fewbench.errors import RunError, first_line
from fewbench.evaluation import Stop
from fewbench.methods import Method
from fewbench.readers import read
from fewbench.readers.harnesses.lm_eval.run_results import Results
from fewbench.readers.options import COMPARED
from fewbench.runners.driving import Answered, OnProgress, run_with
from fewbench.runners.exports import POSITION, check_origin
from fewbench.runners.lm_eval_logs import Logs, header_of
from fewbench.runners.lm_eval_setup import cached, check_installed, make_model, parse, seed_all
from fewbench.runners.lm_eval_tasks import Task, check_runnable, load_tasks, without_bars
from fewbench.runners.result import RunResult
from fewbench.runners.run import OUTAGE
from fewbench.scores import Scores, from_arrays
from fewbench.scores.conditions import SAMPLER, compare_conditions, join_settings
from fewbench.scores.table import PROMPTS, SETTINGS

Places = dict[str, dict[int, str]]
"""Task to position to item."""
LOGS = "lm_eval"
"""Folder for logs in the folder of the evaluation."""
UNSAFE = r'["<>:/|\\?*\[\]]+'  # what lm-eval replaces in names of folders


class LmEvalRunner:
    """Runs lm-eval's tasks in this process.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of `lm-eval run` without tasks: model, model arguments, few-shot examples, …
    models : mapping of target to lm_eval.api.model.LM, optional
        Model objects, in place of a model named in the arguments.
    folder : path, optional
        For logs, in lm-eval's own form (default: they are not kept).
    key : str, optional
        The field that identifies a document, if the scores were imported with `--key`.
    accept_prompts : bool
        Run items whose prompts or settings differ from those of the source models.

    Raises
    ------
    RunError
        If lm-eval does not accept the arguments, or one of them decides what fewbench decides.
    MissingExtraError
        If lm-eval is not installed.
    """

    name = "lm-eval"

    def __init__(
        self,
        arguments: Sequence[str] = (),
        *,
        models: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        key: str | None = None,
        accept_prompts: bool = False,
    ) -> None:
        check_installed()
        self._setup = parse(arguments)
        if models is not None:
            self._setup = replace(self._setup, model="", model_args={})
        self.facts = self._setup.facts
        self._models = {name: cached(model, self._setup) for name, model in (models or {}).items()}
        self._key, self._accept_prompts = key, accept_prompts
        self._temporary = TemporaryDirectory() if folder is None else None
        self._folder = Path(folder or (self._temporary.name if self._temporary else "."))
        self._tasks: dict[str, Task] = {}
        self._logs: dict[str, Logs] = {}
        self._accepted: dict[str, None] = {}

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Check that the scores are of lm-eval, and that there is a model for every target."""
        check_origin(scores.items, "lm-eval")
        if self._models:
            if lacking := [name for name in targets if name not in self._models]:
                raise RunError(
                    f"no model for {some(lacking)}", hint="pass a model object for every target"
                )
        elif len(targets) > 1:
            raise RunError(
                f"{len(targets)} targets, but the arguments of lm-eval name one model",
                hint="run one target at a time, each into a folder of its own",
            )
        self._scores, self._targets = scores, list(targets)
        # lm-eval's name of each item's task: the user may have renamed the tasks of the scores.
        self._task_of = {
            str(item): _task(str(item), str(task)) for item, task in scores.items["task"].items()
        }
        known = scores.items[POSITION] if POSITION in scores.items else pd.Series(dtype="Int64")
        self._like = self._of_each_task()
        self._was = {str(item): int(at) for item, at in known.dropna().items()}
        return []

    def _of_each_task(self) -> Scores:
        """Return one item of each task of lm-eval, with the metric and filter of the sources."""
        first = {task: item for item, task in reversed(list(self._task_of.items()))}
        table = from_arrays(
            np.full((1, len(first)), self._scores.scale.low),
            models=["target"],
            items=list(first.values()),
            tasks=list(first),
            scale=self._scores.scale,
        )
        known = self._scores.items.loc[list(first.values())]
        columns = {name: known[name] for name in ("metric", "filter") if name in known}
        return replace(table, items=table.items.assign(**columns))

    def check_items(self, items: Sequence[str]) -> list[str]:
        """Load tasks and model, and compare documents, metrics, settings and prompts."""
        seed_all(self._setup)
        if not self._models:
            model = make_model(self._setup)
            self._models = {name: cached(model, self._setup) for name in self._targets}
        names = list(dict.fromkeys(self._task_of[item] for item in items))
        self._tasks = load_tasks(names, self._setup, self._key)
        notes = self._find(items)
        self._check_metrics()
        for target in self._targets:
            check_runnable(self._tasks, self._models[target], self._setup)
            header = header_of(self._tasks, self._models[target], self._setup, target)
            folder = self._folder / re.sub(UNSAFE, "__", target)
            self._logs[target] = Logs(folder, target, header)
            self._check_logged(self._logs[target])
            self._check_prompts(target, self._first_of_each_task(items))
        return [*notes, *self._accepted]

    def _find(self, items: Sequence[str]) -> list[str]:
        """Find the documents of items by their hashes; return notes on those that moved."""
        place = {name: at for one in self._tasks.values() for at, name in enumerate(one.ids)}
        self._place = place
        if missing := [item for item in items if item not in place]:
            raise RunError(
                f"{len(missing):,} of {counted(len(items), 'document')} that may be run "
                f"{'is' if len(missing) == 1 else 'are'} not in lm-eval's tasks: "
                f"{self._where(missing)}",
                hint="use the data and the task version of the source models, or import their "
                "logs again without these documents"
                + ("; if the scores were imported with --key, pass it" if not self._key else ""),
            )
        before: dict[str, dict[int, int]] = {name: {} for name in self._tasks}
        for item, was in self._was.items():
            if item in place:
                before[self._task_of[item]][place[item]] = was
        for name, one in self._tasks.items():
            one.replay_as(before[name])
        moved = [item for item in items if self._was.get(item, place[item]) != place[item]]
        if not moved:
            return []
        return [
            f"{counted(len(moved), 'document')} moved since the source models ran, such as "
            f"{moved[0]!r} from position {self._was[moved[0]]} to {place[moved[0]]}; each is found "
            "by its hash"
        ]

    def _where(self, missing: Sequence[str]) -> str:
        """Return names of missing items, with what stands at the position of the first."""
        item = missing[0]
        said = some(missing)
        task = self._tasks[self._task_of[item]]
        if (at := self._was.get(item)) is not None:
            now = task.ids[at] if at < len(task.ids) else None
            said += f" (position {at} of {task.name} now has {now or 'no document'})"
        return said

    def _check_logged(self, logs: Logs) -> None:
        """Raise RunError if documents have moved since the logs of this run began."""
        for name, one in self._tasks.items():
            for (_, at), row in logs.rows(name).items():
                if at >= len(one.hashes) or row["doc_hash"] != one.hashes[at]:
                    raise RunError(
                        f"{logs.path_of(name)}: position {at} of {name} now has another document "
                        "than when this run began",
                        hint="restore the data of the task, or run into another folder",
                    )

    def _check_metrics(self) -> None:
        """Raise RunError if a task no longer has the metric or the filter of the sources."""
        known = self._like.items.set_index("task")
        for name, one in self._tasks.items():
            for column, has in (("metric", one.metrics), ("filter", one.filters)):
                wanted = str(known[column][name]) if column in known else ""
                can_compute = column == "metric" and wanted in COMPARED
                if wanted and wanted not in has and not can_compute:
                    raise RunError(
                        f"task {name!r} has no {column} {wanted!r}, which the source models have; "
                        f"it has {some(has, most=8)}",
                        hint="use the task of the source models, or import another "
                        f"{column} of theirs",
                    )

    def _first_of_each_task(self, items: Iterable[str]) -> list[str]:
        return list({self._task_of[item]: item for item in reversed(list(items))}.values())

    def _check_prompts(self, target: str, items: Sequence[str]) -> dict[str, str]:
        """Compare prompts and settings with the sources' before the model is asked.

        Returns lm-eval's hash of each item's prompt.
        """
        if not items:
            return {}
        hashes: dict[str, str] = {}
        for name, places in self._places(items).items():
            positions = sorted(places)
            found = self._tasks[name].prompt_hashes(positions, self._models[target], self._setup)
            hashes |= {places[at]: one for at, one in zip(positions, found, strict=True)}
        results = Results(Path("results"), self._logs[target].header)
        form = f"@{results.prompt_form}" if results.prompt_form else ""
        names = [self._task_of[item] for item in items]
        settings = {name: results.task_settings(name) for name in set(names)}
        # Without the sampler: examples are those of a whole run, so others are a difference.
        texts = {
            name: join_settings([{k: v for k, v in one.items() if k != SAMPLER}])
            for name, one in settings.items()
        }
        table = from_arrays(
            np.zeros((1, len(items))), models=[target], items=list(items), tasks=names
        )
        columns = {
            PROMPTS: [hashes[item][:16] + form for item in items],
            SETTINGS: [texts[name] for name in names],
        }
        mine = replace(table, items=table.items.assign(**columns))
        found_out = compare_conditions(self._scores, mine, list(items))
        if found_out.differences and self._accept_prompts:
            said = "accepted other prompts or settings than the source models': "
            self._accepted[said + "; ".join(found_out.differences)] = None
        elif found_out.differences:
            raise RunError(
                "prompts or settings differ from the source models': "
                + "; ".join(found_out.differences),
                hint="give lm-eval the arguments and the version of the source models; or pass "
                "--accept-prompts, and the estimate carries a warning",
            )
        return hashes

    def _places(self, items: Iterable[str]) -> Places:
        found: Places = {}
        for item in items:
            found.setdefault(self._task_of[item], {})[self._place[item]] = item
        return found

    # -- answers -----------------------------------------------------------------------------

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Run a model on items, except for those whose answers are in the logs already."""
        logs, places = self._logs[target], self._places(items)
        fresh = {
            name: {at: item for at, item in own.items() if at not in logs.positions(name)}
            for name, own in places.items()
        }
        fresh = {name: own for name, own in fresh.items() if own}
        hashes = self._check_prompts(
            target, [item for own in fresh.values() for item in own.values()]
        )
        failed = self._run(target, fresh, hashes) if fresh else {}
        written = [logs.path_of(name) for name in places if logs.positions(name)]
        return Answered(self._read(written) if written else {}, failed)

    def _run(self, target: str, places: Places, hashes: Mapping[str, str]) -> dict[str, str]:
        """Run and log documents; return the reasons of those on which the model failed."""
        try:
            self._evaluate(target, places, hashes)
            return {}
        except RunError:
            raise
        except Exception as error:  # of any model: find out on which documents
            every = [(name, at, item) for name, own in places.items() for at, item in own.items()]
            if len(every) == 1:
                return {every[0][2]: _reason(error)}
        failed: dict[str, str] = {}
        in_a_row = 0
        for name, at, item in every:
            if in_a_row >= OUTAGE:
                failed[item] = f"not run, as the model failed on {in_a_row} items before it"
                continue
            try:
                self._evaluate(target, {name: {at: item}}, hashes)
                in_a_row = 0
            except RunError:
                raise
            except Exception as error:
                failed[item] = _reason(error)
                in_a_row += 1
        return failed

    def _evaluate(self, target: str, places: Places, hashes: Mapping[str, str]) -> None:
        from lm_eval.evaluator import evaluate

        setup = self._setup
        chosen = {name: sorted(own) for name, own in places.items()}
        with without_bars():
            results = evaluate(
                self._models[target],
                {name: self._tasks[name].task for name in chosen},
                samples=chosen,
                bootstrap_iters=0,
                log_samples=True,
                system_instruction=setup.system_instruction,
                apply_chat_template=setup.apply_chat_template,
                fewshot_as_multiturn=setup.fewshot_as_multiturn,
                confirm_run_unsafe_code=setup.confirm_run_unsafe_code,
            )
        samples = results["samples"]
        for name, positions in chosen.items():
            self._check_ran(name, positions, samples[name], places[name], hashes)
        self._logs[target].add(samples)

    def _check_ran(
        self,
        name: str,
        positions: Sequence[int],
        rows: Sequence[Mapping[str, Any]],
        items: Mapping[int, str],
        hashes: Mapping[str, str],
    ) -> None:
        """Raise RunError unless lm-eval ran the chosen documents, and only these."""
        task = self._tasks[name]
        ran: dict[str, list[int]] = {}
        for row in rows:
            at = int(row["doc_id"])
            ran.setdefault(str(row["filter"]), []).append(at)
            same = at in items and row["doc_hash"] == task.hashes[at]
            if not same or row["prompt_hash"] != hashes[items[at]]:
                raise RunError(
                    f"lm-eval ran another {'prompt' if same else 'document'} than the one chosen "
                    f"at position {at} of {name}",
                    hint="report this as a bug in fewbench, with the version of lm-eval",
                )
        for filtered, where in ran.items():
            if sorted(where) != list(positions):
                raise RunError(
                    f"lm-eval ran {len(where)} of {len(positions)} chosen documents of {name} "
                    f"(filter {filtered!r})",
                    hint="report this as a bug in fewbench, with the version of lm-eval",
                )

    def _read(self, paths: Sequence[Path]) -> Scores:
        """Read logs, with the item ids of the sources."""
        found = read(
            list(paths), form="lm-eval", like=self._like, key=self._key, scale=self._like.scale
        ).scores
        # Of equal documents, a log of some cannot know which it has; positions say.
        at = zip(found.items["task"], found.items[POSITION], strict=True)
        ids = [self._tasks[str(task)].ids[int(position)] for task, position in at]
        return replace(found, items=found.items.set_axis(ids))

    # -- the end -----------------------------------------------------------------------------

    def finish(self, result: RunResult) -> None:
        """Write each target's results file, with estimates in place of lm-eval's means."""
        known = self._scores.items
        first = known.drop_duplicates("task").set_index("task")
        metrics = {
            str(task): f"{row.get('metric') or 'score'},{row.get('filter') or 'none'}"
            for task, row in first.iterrows()
        }
        groups = {str(task): str(row.get("group") or "") for task, row in first.iterrows()}
        sizes = np.bincount(self._scores.task_of, self._scores.item_weights)
        weights = dict(zip(self._scores.tasks, sizes.tolist(), strict=True))
        for target, logs in self._logs.items():
            if (found := result.estimates.get(target)) is not None:
                logs.save_estimate(found, metrics, weights, groups)

    def close(self) -> None:
        """Remove logs that are not kept."""
        if self._temporary is not None:
            self._temporary.cleanup()


def run_lm_eval(
    scores: Scores,
    method: str | Method = "auto",
    stop: Stop | int = 100,
    arguments: Sequence[str] = (),
    *,
    models: Mapping[str, Any] | None = None,
    targets: Sequence[str] | None = None,
    folder: str | Path | None = None,
    key: str | None = None,
    batch: int | None = None,
    seed: int = 0,
    tries: int = 3,
    accept_prompts: bool = False,
    accept_fractions: bool = False,
    accept_changes: bool = False,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a model in lm-eval on the items that a method chooses, and estimate its score.

    Parameters
    ----------
    scores : Scores
        Scores of the source models, from logs of lm-eval.
    method : str or Method
        As for `Evaluation`; `auto` chooses one.
    stop : Stop or int
        When to stop; a number is a number of items.
    arguments : sequence of str
        Arguments of `lm-eval run` without tasks, such as `["--model", "hf", "--model_args",
        "pretrained=X"]`.
    models : mapping of target to lm_eval.api.model.LM, optional
        Model objects, in place of a model named in the arguments.
    targets : sequence of str, optional
        Names of the target models (default: those of `models`, or "target").
    folder : path, optional
        Keep every answer there, and logs in lm-eval's form in its folder `lm_eval`. The same call
        goes on after a stop or a crash.
    key : str, optional
        The field that identifies a document, if the scores were imported with `--key`.
    batch, seed, tries, accept_prompts, accept_fractions, accept_changes
        As for `Run.open`.
    on_progress : callable, optional
        As for `drive`.

    Raises
    ------
    RunError
        If lm-eval does not accept the arguments, or documents, prompts or settings differ from
        those of the source models.
    MissingExtraError
        If lm-eval is not installed.
    """
    runner = LmEvalRunner(
        arguments,
        models=models,
        folder=None if folder is None else Path(folder) / LOGS,
        key=key,
        accept_prompts=accept_prompts,
    )
    return run_with(
        runner,
        scores,
        method,
        stop,
        folder=folder,
        targets=list(targets or models or ["target"]),
        batch=batch,
        seed=seed,
        tries=tries,
        accept_prompts=accept_prompts,
        accept_fractions=accept_fractions,
        accept_changes=accept_changes,
        on_progress=on_progress,
    )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def _task(item: str, task: str) -> str:
    """Return lm-eval's name of an item's task: items are named TASK/CONTENT."""
    return task if item.startswith(f"{task}/") else item.rpartition("/")[0]
