"""Run chosen items in lm-eval: the model is loaded once, documents and prompts are checked first.

Every document that may be run is found by its hash, wherever lm-eval has it now. Its prompt is
compared with the prompt of the source models before the model runs. Few-shot examples are those of
a whole run (`fewbench.runners.lm_eval.tasks`). Answers are logged as lm-eval logs them, then read
as any log is, with the same checks.
"""

import gc
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbench._files import folder_name
from fewbench._names import some
from fewbench._text import keep_secrets
from fewbench._warned import issue
from fewbench.errors import RunError, first_line
from fewbench.evaluation import Stop
from fewbench.evaluation.journal import LM_EVAL_LOGS
from fewbench.methods import Method
from fewbench.public import public_results
from fewbench.readers import import_results
from fewbench.runners.checks import check_alike
from fewbench.runners.driving import Answered, OnProgress, Runner, run_with
from fewbench.runners.lm_eval.benchmark import ChosenTasks, choose_tasks
from fewbench.runners.lm_eval.logs import Logs, header_of
from fewbench.runners.lm_eval.setup import (
    cached,
    check_installed,
    make_model,
    own_generators,
    parse,
    seed_all,
)
from fewbench.runners.lm_eval.sources import SourceDocuments, without_sampler
from fewbench.runners.lm_eval.tasks import LmTask, check_runnable, load_tasks, run_documents
from fewbench.runners.model_facts import of_model
from fewbench.runners.progress import shown
from fewbench.runners.result import RunResult
from fewbench.runners.run import OUTAGE
from fewbench.scores import Benchmark, Scores
from fewbench.scores.conditions import NAMES, asked_elsewhere
from fewbench.scores.table import POSITION, SETTINGS, key_field_of

Places = dict[str, dict[int, str]]
"""Task to position to item."""


class LmEvalRunner(Runner):
    """Runs lm-eval's tasks in this process.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of `lm-eval run`: model, model arguments, few-shot examples, …; tasks only if
        there are no scores of source models.
    models : mapping of target to lm_eval.api.model.LM, optional
        Model objects, in place of a model named in the arguments.
    folder : path, optional
        For logs, in lm-eval's own form (default: they are not kept).
    key : str, optional
        The field that identifies a document (default: the one that the scores record).
    accept_differences : bool
        Run items although their prompts or scoring differ from the source models'.
    metric, filter : str, optional
        Names in order of preference, comma-separated. With scores of source models, one name, if
        the scores record none.

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
        accept_differences: bool = False,
        metric: str | None = None,
        filter: str | None = None,
    ) -> None:
        check_installed()
        keep_secrets(" ".join(arguments))
        self._setup = parse(arguments)
        if models is not None:
            self._setup = replace(self._setup, model="", model_args={})
        self.facts, self.model_name = self._setup.facts, self._setup.target
        self._seen = {name: of_model(model) for name, model in (models or {}).items()}
        self._models = {name: self._cached(name, model) for name, model in (models or {}).items()}
        self._is_loaded = False  # the model that the arguments name
        self._key, self._accept_differences = key, accept_differences
        self._temporary = TemporaryDirectory() if folder is None else None
        self._folder = Path(folder or (self._temporary.name if self._temporary else "."))
        self._wanted = {"metric": metric, "filter": filter}
        self._chosen: ChosenTasks | None = None
        self._tasks: dict[str, LmTask] = {}
        self._logs: dict[str, Logs] = {}
        self._again: dict[tuple[str, int], Logs] = {}  # of further answers to the same documents
        self._accepted: dict[str, None] = {}
        self._place: dict[str, int] = {}
        self._failed: set[str] = set()  # items on which a model failed while it answered others

    def benchmark(self) -> Benchmark:
        """Load the tasks that the arguments name; one item for each document."""
        seed_all(self._setup)
        self._chosen = choose_tasks(self._setup, self._key, **self._wanted)
        return self._chosen.benchmark

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Check that the scores name all that they must, and that every target has a model."""
        notes = [*asked_elsewhere(scores, self.name)] if scores.n_models else []
        if self._chosen is None:
            for name, value in ({"tasks": self._setup.tasks} | self._wanted).items():
                if value and (name == "tasks" or name in scores.items):
                    raise RunError(
                        f"--{name} is not accepted: the scores name the {name.rstrip('s')}s",
                        hint="leave it out, or leave out the scores",
                    )
        else:
            notes = [*public_results(self.name, self._chosen.tasks), *self._chosen.notes]
        self._key = self._key or key_field_of(scores.items)
        self._sources = SourceDocuments(scores, None if self._chosen else self._wanted)
        self._targets = list(targets)
        if len({self._folder_of(name) for name in targets}) < len(targets):
            raise RunError(
                f"two of the targets {some(targets)} would share a folder of logs",
                hint="choose names that differ in more than their punctuation",
                kind="taken",
            )
        if self._models:
            if lacking := [name for name in targets if name not in self._models]:
                raise RunError(
                    f"no model for {some(lacking)}", hint="pass a model object for every target"
                )
        elif len(targets) > 1:
            raise RunError(
                f"{len(targets)} targets, but the arguments of lm-eval name one model",
                hint="run one target at a time, all into the same folder",
            )
        return notes

    def check_items(self, items: Sequence[str]) -> list[str]:
        """Load tasks and model, and compare documents, metrics, settings and prompts."""
        seed_all(self._setup)
        self._model(self._targets[0])
        names = list(dict.fromkeys(self._sources.task_of[item] for item in items))
        if self._chosen is None:
            self._tasks = load_tasks(names, self._setup, self._key)
        else:
            self._tasks = {name: self._chosen.tasks[name] for name in names}
        is_keyed = self._key is not None
        self._place, notes = self._sources.find(items, self._tasks, is_keyed=is_keyed)
        self._sources.check_texts({item: self._place[item] for item in items}, self._tasks)
        if self._key == POSITION:
            notes.append(
                "documents are found by their number alone: nothing in the scores says what they "
                "ask, so use the data set of the source models"
            )
        self._sources.check_metrics(self._tasks)
        keys: dict[str, str] = {}
        for name, place in self._places(items).items():
            keys |= dict(zip(place.values(), self._tasks[name].answer_keys(place), strict=True))
        for target in self._targets:
            check_runnable(self._tasks, self._model(target), self._setup)
            header = header_of(self._tasks, self._model(target), self._setup, target)
            self._logs[target] = Logs(self._folder_of(target), target, header)
            self._check_logged(target)
            first = self._places(self._sources.first_of_each_task(items))
            facts = {item: ("", key) for item, key in keys.items()}
            self._check_alike(target, facts | self._hashes(target, first))
        return [*notes, *self._accepted]

    def _model(self, target: str) -> Any:
        """Return a target's model; that of the arguments is loaded first."""
        if not self._models:
            seed_all(self._setup)
            model = make_model(self._setup)
            self._models = {name: self._cached(name, model) for name in self._targets}
            self._is_loaded = True
        return self._models[target]

    def release(self) -> None:
        """Free the memory of the model that the arguments name."""
        if self._is_loaded:
            self._models, self._is_loaded = {}, False
            gc.collect()
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()

    def model_facts(self, target: str) -> Mapping[str, str]:
        """Return what can be seen of the weights of a target's model object."""
        return self._seen.get(target, {})

    def _cached(self, target: str, model: Any) -> Any:
        """Return a model with its cache of answers, if there is one."""
        if target in self._seen and not self._seen[target] and self._setup.use_cache is not None:
            raise RunError(
                f"--use_cache is not accepted: the weights of {target!r} cannot be seen, so "
                "another model of this name would get its answers",
                hint="leave it out; the folder of the run keeps all answers",
            )
        return cached(model, self._setup, {**self.facts, **self.model_facts(target)})

    def _folder_of(self, target: str) -> Path:
        return self._folder / folder_name(target, gap="__")  # as lm-eval names folders of models

    def _check_logged(self, target: str) -> None:
        """Raise RunError if documents, prompts or scoring changed during the run."""
        logs, places = self._logs[target], Places()
        for name, task in self._tasks.items():
            for (_, at), row in logs.rows(name).items():
                if at >= len(task.hashes) or row["doc_hash"] != task.hashes[at]:
                    raise RunError(
                        f"{logs.path_of(name)}: position {at} of {name} now has another document "
                        "than when this run began",
                        hint="restore the data of the task, or run into another folder",
                        kind="changed",
                    )
                places.setdefault(name, {})[at] = task.ids[at]
        if places:
            logged = self._read([logs.path_of(name) for name in places])
            names = "the logs of this run", "the task now"
            self._check_alike(target, self._hashes(target, places), logged, names)

    def _hashes(self, target: str, places: Places) -> dict[str, tuple[str, str]]:
        """Return lm-eval's hash of each item's prompt, and its key."""
        hashes: dict[str, tuple[str, str]] = {}
        for name, of_task in places.items():
            positions = sorted(of_task)
            hashed = self._tasks[name].hashes_of(positions, self._model(target), self._setup)
            hashes |= {of_task[at]: hash_of for at, hash_of in zip(positions, hashed, strict=True)}
        return hashes

    def _check_alike(
        self,
        target: str,
        hashes: Mapping[str, tuple[str, str]],
        before: Scores | None = None,
        names: tuple[str, str] = NAMES,
    ) -> None:
        """Compare what would run with the sources or earlier answers, before the model runs."""
        now = self._sources.now(hashes, self._logs[target].header, self._tasks)
        table = self._sources.scores if before is None else before
        if differ := check_alike(table, now, hashes, names, accept=self._accept_differences):
            self._accepted[f"accepted items with different prompts or scoring: {differ}"] = None

    def _places(self, items: Iterable[str]) -> Places:
        places: Places = {}
        for item in items:
            places.setdefault(self._sources.task_of[item], {})[self._place[item]] = item
        return places

    # -- answers -----------------------------------------------------------------------------

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Run a model on items, except for those whose answers are in the logs already."""
        logs, places = self._logs_of(target), self._places(items)
        task_of = self._sources.task_of
        fresh = [item for item in items if self._place[item] not in logs.positions(task_of[item])]
        hashes = self._hashes(target, self._places(fresh))
        if fresh:
            self._check_alike(target, hashes)
        failed, last_failed = self._run(target, fresh, hashes) if fresh else ({}, {})
        written = [logs.path_of(name) for name in places if logs.positions(name)]
        answers: Scores | dict[str, float] = self._read(written) if written else {}
        texts = {
            of_task[at]: text
            for name, of_task in places.items()
            for at, text in logs.replies(name).items()
            if at in of_task
        }
        return Answered(answers, failed, texts=texts, last_failed=last_failed)

    def _logs_of(self, target: str) -> Logs:
        """Return the logs of the answers that are given now: second ones have another folder."""
        logs, place = self._logs[target], (target, self.repeat)
        if self.repeat == 1:
            return logs
        if place not in self._again:
            folder = logs.folder / f"repeat-{self.repeat}"
            self._again[place] = Logs(folder, target, logs.header)
        return self._again[place]

    def _run(
        self, target: str, items: Sequence[str], hashes: Mapping[str, tuple[str, str]]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Run and log documents; return why the model failed on some, and on the last of them."""
        failed: dict[str, str] = {}
        last_failed: dict[str, str] = {}
        try:
            return self._evaluate(target, items, hashes), {}
        except RunError:
            raise
        except Exception as error:  # of any model: find out on which documents
            if len(items) == 1:
                return failed, {items[0]: _reason(error)}
        for item in items:
            if len(last_failed.keys() - self._failed) >= OUTAGE:
                first = next(iter(last_failed.values()))
                last_failed[item] = f"not run: the model failed on the items before it ({first})"
                continue
            try:
                if unscored := self._evaluate(target, [item], hashes):
                    last_failed |= unscored
                else:
                    failed |= last_failed
                    last_failed = {}
            except RunError:
                raise
            except Exception as error:
                last_failed[item] = _reason(error)
        self._failed |= failed.keys()
        return failed, last_failed

    def _evaluate(
        self, target: str, items: Sequence[str], hashes: Mapping[str, tuple[str, str]]
    ) -> dict[str, str]:
        """Run and log documents; return why some have no score. They are not logged."""
        model, places = self._model(target), self._places(items)
        samples = run_documents(self._tasks, model, places, hashes, self._setup)
        unscored: dict[str, str] = {}
        for task, rows in samples.items():
            bad = {places[task][at]: why for at, why in self._sources.unscored(task, rows).items()}
            samples[task] = [row for row in rows if places[task][row["doc_id"]] not in bad]
            unscored |= bad
        self._logs_of(target).add(samples)
        return unscored

    def _read(self, paths: Sequence[Path]) -> Scores:
        """Read logs, with the item ids of the sources."""
        like = self._sources.metrics
        answers = import_results(
            list(paths), form="lm-eval", like=like, key=self._key, scale=like.scale
        ).scores
        # If documents are equal, only their positions identify those in a partial log.
        at = zip(answers.items["task"], answers.items[POSITION], strict=True)
        ids = [self._tasks[str(task)].ids[int(position)] for task, position in at]
        items = answers.items.set_axis(ids)
        return replace(
            answers, items=items.assign(**{SETTINGS: items[SETTINGS].map(without_sampler)})
        )

    # -- the end -----------------------------------------------------------------------------

    def finish(self, result: RunResult) -> Sequence[str]:
        """Write each target's results file, with estimates in place of lm-eval's means."""
        metrics = self._sources.scored_by()
        for target, estimates in result.estimates.items():
            logs = self._logs.get(target) or Logs(self._folder_of(target), target)
            if logs.header:  # none in a run whose answers were all recorded by hand
                logs.save_estimate(estimates, metrics)
        return ()

    def close(self) -> None:
        """Remove logs that are not kept."""
        if self._temporary is not None:
            self._temporary.cleanup()


def run_lm_eval(
    scores: Scores | None,
    method: str | Method = "auto",
    stop: Stop | int | None = None,
    arguments: Sequence[str] = (),
    *,
    models: Mapping[str, Any] | None = None,
    targets: Sequence[str] | None = None,
    folder: str | Path | None = None,
    items_of: str | Path | None = None,
    key: str | None = None,
    batch: int | None = None,
    seed: int = 0,
    tries: int = 3,
    accept_differences: bool = False,
    accept_fractions: bool = False,
    accept_changes: bool = False,
    metric: str | None = None,
    filter: str | None = None,
    retry_skipped: bool = False,
    repeats: int = 1,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a model in lm-eval on the items that a method chooses, and estimate its score.

    Parameters
    ----------
    scores : Scores or None
        Scores of the source models on documents of lm-eval's tasks. None: draw documents from the
        tasks that `--tasks` names. Then the full score is the mean over documents, or, if the one
        group that is named has `weight_by_size: false`, the mean over its tasks.
    method : str or Method
        As for `Evaluation`; `auto` chooses one.
    stop : Stop or int, optional
        When to stop; a number is a number of items. Needed, except for a pack or to resume a run.
    arguments : sequence of str
        Arguments of `lm-eval run`, such as `["--model", "hf", "--model_args", "pretrained=X"]`,
        with `--tasks` if there are no scores.
    models : mapping of target to lm_eval.api.model.LM, optional
        Model objects, in place of a model named in the arguments.
    targets : sequence of str, optional
        Names of the target models (default: those of `models`, or the model's name in lm-eval).
    folder : path, optional
        Keep every answer there, and logs in lm-eval's form in its folder `lm_eval`. Repeat
        the call to resume after a stop or a crash. A new target joins those in the folder.
    items_of : path, optional
        As for `fewbench.run`.
    key : str, optional
        The field that identifies a document (default: the one that the scores record).
    batch, seed, tries, accept_differences, accept_fractions, accept_changes, retry_skipped, repeats
        As for `Run.open`.
    metric, filter : str, optional
        Without scores: names in order of preference, comma-separated (default: the first of each
        task or its group, with a note). With scores that do not record theirs: its name.
    on_progress : callable, optional
        As for `fewbench.run`.

    Raises
    ------
    RunError
        If lm-eval does not accept the arguments, or documents, prompts or scoring differ from the
        source models'.
    MissingExtraError
        If lm-eval is not installed.
    """
    runner = LmEvalRunner(
        arguments,
        models=models,
        folder=None if folder is None else Path(folder) / LM_EVAL_LOGS,
        key=key,
        accept_differences=accept_differences,
        metric=metric,
        filter=filter,
    )
    with own_generators(), shown("lm-eval", on_progress) as progress:
        result = run_with(
            runner,
            scores,
            method,
            stop,
            folder=folder,
            targets=list(targets or models or []),
            items_of=items_of,
            batch=batch,
            seed=seed,
            tries=tries,
            accept_differences=accept_differences,
            accept_fractions=accept_fractions,
            accept_changes=accept_changes,
            retry_skipped=retry_skipped,
            repeats=repeats,
            **progress,
        )
    issue(result.warnings)
    return result


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
