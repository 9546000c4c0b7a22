"""Logs of a run in lm-eval's own form: samples_TASK_TIME.jsonl and results_TIME.json.

The files are complete after every batch, each written whole. Answers are logged before they are
recorded in the evaluation, so a run that was killed in between takes them from here and asks the
model nothing twice.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fewbench._files import written_whole
from fewbench._json import loads
from fewbench._text import masked_arguments, masked_within
from fewbench._version import __version__
from fewbench.errors import RunError
from fewbench.evaluation import Estimate
from fewbench.runners.lm_eval.setup import Setup
from fewbench.runners.lm_eval.tasks import LmTask

MARK = "fewbench"
"""Key of a results file that marks it as an estimate."""
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
Row = dict[str, Any]


class Logs:
    """The log files of one target.

    Parameters
    ----------
    folder : Path
        Made with the first rows.
    target : str
    header : dict, optional
        Results file without results: model, settings of the tasks, versions (default: that of the
        file in the folder).

    Raises
    ------
    RunError
        If the folder holds logs of another target, or of lm-eval itself, or a damaged file.
    """

    def __init__(self, folder: Path, target: str, header: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.header = dict(header or {})
        self._mark = {"version": __version__, "target": target}
        self._rows: dict[str, dict[tuple[str, int], Row]] = {}
        self.stamp = datetime.now().isoformat().replace(":", "-")
        for path in sorted(folder.glob("results_*.json")):
            parsed = _parse(path.read_bytes(), str(path))
            self.header = self.header or parsed
            before = parsed.get(MARK)
            if not isinstance(before, dict) or before.get("target") != target:
                raise RunError(
                    f"{path}: not the results of target {target!r} in a fewbench run",
                    hint="run into another folder, or move the file away",
                )
            self.stamp = path.stem.removeprefix("results_")

    def path_of(self, task: str) -> Path:
        """Return the samples file of a task."""
        return self.folder / f"samples_{task}_{self.stamp}.jsonl"

    def rows(self, task: str) -> dict[tuple[str, int], Row]:
        """Return the logged rows of a task by filter and position."""
        if task not in self._rows:
            path = self.path_of(task)
            by_place: dict[tuple[str, int], Row] = {}
            if path.exists():
                for number, line in enumerate(path.read_bytes().splitlines(), start=1):
                    row = _parse(line, f"{path}, line {number}")
                    by_place[str(row["filter"]), int(row["doc_id"])] = row
            self._rows[task] = by_place
        return self._rows[task]

    def positions(self, task: str) -> set[int]:
        """Return the positions of a task that have rows."""
        return {at for _, at in self.rows(task)}

    def replies(self, task: str) -> dict[int, str]:
        """Return the replies of a task by position (empty if the model only rated options)."""
        replies_of = {at: row["resps"] for (_, at), row in self.rows(task).items()}
        return {
            at: replies[0][0]
            for at, replies in replies_of.items()
            if replies and replies[0] and isinstance(replies[0][0], str)
        }

    def add(self, samples: Mapping[str, Sequence[Row]]) -> None:
        """Add rows as lm-eval's `evaluate` returns them, by task, and write the files."""
        if not self._results.exists():  # first: the rows are of this model and no other
            self.save({})
        for task, rows in samples.items():
            of_task = self.rows(task)
            for row in rows:
                of_task[str(row["filter"]), int(row["doc_id"])] = loads(dump(as_logged(row)))
            filters = list(dict.fromkeys(name for name, _ in of_task))
            # lm-eval writes one filter after the other, and positions in order.
            order = sorted(of_task, key=lambda at: (filters.index(at[0]), at[1]))
            with written_whole(self.path_of(task)) as temporary:
                text = "".join(dump(of_task[at]) + "\n" for at in order)
                temporary.write_text(text, encoding="utf-8")
        self.save({})

    @property
    def _results(self) -> Path:
        return self.folder / f"results_{self.stamp}.json"

    def save(self, parts: Mapping[str, Any], mark: Mapping[str, Any] | None = None) -> None:
        """Write the results file: `parts` of it, such as `results`, and what `MARK` holds besides.

        Before the end it has no results: lm-eval's means over chosen items are not scores.
        """
        sizes = self.header["n-samples"]
        ran = {task: {**sizes[task], "effective": len(self.positions(task))} for task in sizes}
        data = {"results": {}, **self.header, "n-samples": ran, **parts}
        data[MARK] = {**self._mark, **(mark or {})}
        with written_whole(self._results) as temporary:
            temporary.write_text(dump(data, indent=2) + "\n", encoding="utf-8")

    def save_estimate(self, found: Estimate, metrics: Mapping[str, str]) -> None:
        """Write the results file with estimates in place of lm-eval's means.

        lm-eval would weight a group's tasks by the documents that were run; a benchmark weights
        them by all of their documents.

        Parameters
        ----------
        found : Estimate
        metrics : mapping of task to str
            Metric and filter, as lm-eval writes them: "acc,none".
        """
        from lm_eval.loggers.utils import add_env_info

        results = {
            task: _entry(f"{task} (estimate)", metrics[task], score)
            for task, score in found.tasks.items()
        }
        entries: dict[str, Any] = {}
        for name, group in found.groups.items():
            named = {metrics[task] for task in found.tasks_in(name)}
            if len(named) == 1 and group.score is not None:  # lm-eval has no name for several
                entries[name] = _entry(f"{name} (estimate)", named.pop(), group.score)
        ends = f"{found.interval.low:.4g} .. {found.interval.high:.4g}"
        title = f"full score (estimate from {found.items_run} of {found.items_total} documents, "
        title += f"{found.level:.0%} interval {ends})"
        named = set(metrics.values())
        entries["full score"] = _entry(
            title, named.pop() if len(named) == 1 else "mean,none", found.score
        )
        add_env_info(self.header)  # takes seconds where torch is installed
        self.save(
            {
                "results": {**results, **entries},
                "groups": entries,
                "group_subtasks": {name: [*group.parts] for name, group in found.groups.items()},
            },
            {"estimate": loads(found.to_json())},
        )


def _entry(alias: str, metric: str, score: float) -> Row:
    name, _, filtered = metric.partition(",")
    return {"alias": alias, metric: score, f"{name}_stderr,{filtered}": "N/A"}


def header_of(tasks: Mapping[str, LmTask], model: Any, setup: Setup, target: str) -> Row:
    """Return a results file without results, as lm-eval fills it.

    Without a model (None), the text of the chat template is unknown.
    """
    from lm_eval.loggers.utils import add_tokenizer_info
    from lm_eval.utils import sanitize_model_name

    configs = {name: task.task.dump_config() for name, task in tasks.items()}
    template = setup.apply_chat_template
    chat_template = None if not template else "" if model is None else model.chat_template(template)
    name = setup.model_name or target
    info = model.get_model_info() if hasattr(model, "get_model_info") else {}
    header: Row = {
        "group_subtasks": {},
        "configs": configs,
        "versions": {name: task.task.VERSION for name, task in tasks.items()},
        "n-shot": {name: _shots(config) for name, config in configs.items()},
        "higher_is_better": {name: task.task.higher_is_better() for name, task in tasks.items()},
        "n-samples": {name: {"original": len(task.documents)} for name, task in tasks.items()},
        "config": {
            "model": setup.model or type(model).__name__,
            "model_args": loads(masked_arguments(dump(setup.model_args))),
            **info,
            "batch_size": setup.batch_size,
            "batch_sizes": [],
            "device": setup.device,
            "use_cache": setup.use_cache,
            "limit": None,
            "bootstrap_iters": 0,
            "gen_kwargs": setup.gen_kwargs or None,
            **dict(zip(SEEDS, setup.seeds, strict=True)),
        },
        "date": time.time(),
        "task_hashes": {},
        "model_source": setup.model or "CUSTOM",
        "model_name": name,
        "model_name_sanitized": sanitize_model_name(name),
        "system_instruction": setup.system_instruction,
        "system_instruction_sha": _sha256(setup.system_instruction),
        "fewshot_as_multiturn": setup.fewshot_as_multiturn,
        "chat_template": chat_template,
        "chat_template_sha": _sha256(chat_template),
        "lm_eval_version": version("lm_eval"),
    }
    add_tokenizer_info(header, model)
    return header


def _shots(config: Mapping[str, Any]) -> int:
    """Return the number of examples, as lm-eval counts those that a prompt's text holds."""
    metadata = config.get("metadata")
    written = metadata.get("num_fewshot") if isinstance(metadata, dict) else None
    return int(config.get("num_fewshot") or written or 0)


def _sha256(text: str | None) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def as_logged(row: Mapping[str, Any]) -> Row:
    """Return a row in the form that lm-eval writes to files."""
    from lm_eval.utils import sanitize_list

    arguments = {
        f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(request)}
        for i, request in enumerate(row["arguments"])
    }
    return {
        **row,
        "arguments": arguments,
        "resps": masked_within(sanitize_list(row["resps"])),
        "filtered_resps": masked_within(sanitize_list(row["filtered_resps"])),
        "target": str(row["target"]),
    }


def dump(value: Any, indent: int | None = None) -> str:
    """Return JSON as lm-eval writes it."""
    from lm_eval.utils import handle_non_serializable

    return json.dumps(value, indent=indent, default=handle_non_serializable, ensure_ascii=False)


def _parse(text: bytes, where: str) -> Row:
    try:
        parsed = loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise RunError(
            f"{where}: damaged",
            hint="delete the file to run its items again; recorded answers stay in answers.jsonl",
        )
    return parsed
