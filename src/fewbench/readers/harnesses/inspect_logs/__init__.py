"""Inspect: .eval and .json logs, read with Inspect's own reader."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from fewbench._names import some
from fewbench.errors import MissingExtraError, ReaderError, first_line
from fewbench.readers.files import head
from fewbench.readers.harness import UNKNOWN, Rows, Run, Unit, Wants
from fewbench.readers.harnesses.inspect_logs.scored import (
    Scored,
    content_of,
    option_table,
    score_samples,
)
from fewbench.readers.values import setting, shortened
from fewbench.scores.conditions import GENERATION

# Of whole samples, what may be large and is not needed.
UNREAD = frozenset({"messages", "events", "store", "attachments"})
CHOICES_SINCE = (0, 3, 200)  # summaries of older versions lack the choices
CUT = ("...\n(content truncated)", "(Image)", "(Audio)", "(Video)", "(Data)", "(Document)")
REMOVED, SHORTENED = "Key removed from summary (> 1k)", 1000
# Generation arguments that change answers and are not the model's own, as its reasoning is.
ARGUMENTS = (
    *("system_message", "temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "best_of"),
    *("num_choices", "frequency_penalty", "presence_penalty", "logit_bias", "response_schema"),
    *("extra_body",),
)
LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")
JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')


@dataclass(frozen=True)
class Log:
    """A log: its header, and its samples as summaries or whole."""

    header: Any
    samples: Sequence[Any]


def read_log(path: Path, key: str | None = None) -> Log:
    """Read a log: header and summaries if they suffice, else whole samples.

    Raises
    ------
    MissingExtraError, ReaderError
        If Inspect is not installed; if the log is damaged or not from Inspect.
    """
    try:
        inspect_log = import_module("inspect_ai.log")
    except ImportError as error:
        raise MissingExtraError(
            "logs of Inspect are read with inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    try:
        if path.suffix == ".json":
            log = inspect_log.read_eval_log(str(path))
            return Log(log, log.samples or [])
        header = inspect_log.read_eval_log(str(path), header_only=True)
        summaries = inspect_log.read_eval_log_sample_summaries(str(path))
        if not _needs_samples(header, summaries, key):
            return Log(header, summaries)
        read = inspect_log.read_eval_log
        sparing = "exclude_fields" in signature(read).parameters  # not in 0.3.200
        whole = read(str(path), **({"exclude_fields": set(UNREAD)} if sparing else {}))
        return Log(header, whole.samples or [])
    except Exception as error:  # of zip, zstd, JSON and pydantic, by version
        raise ReaderError(
            f"{path}: not a whole log of Inspect ({type(error).__name__}: {first_line(error)})",
            hint="copy it again; if a newer Inspect wrote it, update inspect-ai",
        ) from error


def _needs_samples(header: Any, summaries: Sequence[Any], key: str | None) -> bool:
    asked = (header.plan.config, header.eval.model_generate_config)
    if any(one and one.logprobs for one in asked) and any(one.choices for one in summaries):
        return True
    if _version(header) < CHOICES_SINCE:
        return True
    texts = [text for one in summaries for text in (*_texts(one.input), *_texts(one.target))]
    if any(text.endswith(CUT) for text in texts):
        return True
    return key not in (None, "id", "input") and any(
        value is None or value == REMOVED or (isinstance(value, str) and len(value) > SHORTENED)
        for value in (one.metadata.get(key) for one in summaries)
    )


def _texts(said: Any) -> list[str]:
    if isinstance(said, str):
        return [said]
    found = []
    for one in said:
        content = one if isinstance(one, str) else one.content
        parts = [content] if isinstance(content, str) else content
        found += [part if isinstance(part, str) else getattr(part, "text", "") for part in parts]
    return found


def _version(header: Any) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", str(header.eval.packages.get("inspect_ai", "")))
    return tuple(int(number) for number in numbers[:3])


def variant_of(header: Any) -> str:
    """Return the arguments of task and solver, which distinguish runs."""
    spec = header.eval
    given = dict(sorted((spec.task_args_passed or {}).items()))
    if spec.solver:
        given["solver"] = spec.solver
        given |= {f"solver.{k}": v for k, v in sorted((spec.solver_args_passed or {}).items())}
    return shortened(", ".join(f"{k}={_text(v)}" for k, v in given.items()))


def settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return the model settings that change answers."""
    spec = header.eval
    found: dict[str, Any] = {"model": spec.model, **(spec.model_args or {})}
    for config in (spec.model_generate_config, header.plan.config):
        if config is not None:
            found |= config.model_dump(exclude_none=True)
    if spec.model_base_url:
        found["model_base_url"] = spec.model_base_url
    for role, models in (spec.model_roles or {}).items():
        listed = models if isinstance(models, list) else [models]
        found[f"role {role}"] = ", ".join(str(getattr(one, "model", one)) for one in listed)
    return tuple((key, shortened(_text(found[key]))) for key in sorted(found))


def task_settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return the task settings that change answers."""
    spec, plan = header.eval, header.plan
    solvers = [
        " ".join([step.solver, *(f"{k}={setting(v)}" for k, v in sorted(_passed(step).items()))])
        for step in plan.steps
    ]
    found = {
        "task version": setting(str(spec.task_version)),
        "solver": shortened(", ".join(solvers)),
    }
    found |= {
        f"task argument: {name}": setting(value)
        for name, value in (spec.task_args_passed or {}).items()
    }
    for config in (spec.model_generate_config, plan.config):
        given = {} if config is None else config.model_dump(exclude_none=True)
        found |= {GENERATION + name: setting(given[name]) for name in ARGUMENTS if name in given}
    for name in LIMITS:
        if getattr(spec.config, name, None) is not None:
            found[f"limit: {name}"] = setting(getattr(spec.config, name))
    return tuple(sorted(found.items()))


def _passed(step: Any) -> dict[str, Any]:
    """Return a solver's explicit arguments."""
    passed = getattr(step, "params_passed", None)
    return dict(step.params if passed is None else passed)


def positions_of(header: Any) -> dict[str, int]:
    """Return each sample's position in the dataset; {} if unknown.

    A log lists its samples in dataset order, so positions are known for the whole dataset or a
    range of it, but not for samples chosen by id.
    """
    dataset, config = header.eval.dataset, header.eval.config
    shuffled = dataset.shuffled or config.sample_shuffle not in (None, False)
    ids = dataset.sample_ids or []
    if shuffled or config.sample_id is not None:
        return {}
    first = config.limit[0] if isinstance(config.limit, list | tuple) else 0
    if config.limit is None and len(ids) != dataset.samples:
        return {}
    return {str(own_id): first + at for at, own_id in enumerate(ids)}


def notes_on(header: Any, scored: Scored) -> tuple[str, ...]:
    """Return the notes on a log."""
    notes = []
    if header.status != "success":
        error = getattr(header.error, "message", None)
        why = f": {str(error).strip().splitlines()[0]}" if error and str(error).strip() else ""
        notes.append(
            f"the run did not finish (status {header.status!r}{why}); what it answered is read"
        )
    stopping = getattr(header.results, "early_stopping", None)
    if stopping is not None:
        notes.append(
            f"{stopping.manager!r} ended the run after {len(scored.items)} items by what they "
            "scored; their mean is not that of the task"
        )
    epochs = {item.epochs for item in scored.items}
    if epochs - {1}:
        reducers = header.eval.config.epochs_reducer or ["mean"]
        own = "" if reducers == ["mean"] else f"; Inspect's own score takes {', '.join(reducers)}"
        uneven = ", not of all items as many" if len(epochs) > 1 else ""
        notes.append(f"scores are means over {max(epochs)} epochs{uneven}{own}")
    for own_ids, why in (
        (scored.failed, "ended in an error"),
        (scored.unscored, "have no score"),
        *((own_ids, f"have no score of {metric!r}") for metric, own_ids in scored.lacking.items()),
    ):
        if own_ids:
            notes.append(f"samples that {why} count as not run ({len(own_ids)}): {some(own_ids)}")
    if scored.despite_errors:
        notes.append(
            f"{scored.despite_errors} samples ended in an error and were scored all the same"
        )
    if getattr(header, "invalidated", False):
        notes.append("somebody marked samples of this log as invalid; they are read all the same")
    return tuple(notes)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


class InspectLogs:
    """Read logs of Inspect and of `lighteval eval`; needs `fewbench[inspect]`.

    An item is a sample, identified by its input, choices and right answers. Each scorer is a
    metric, SCORER.KEY if it returns several values; C, P, I and N count 1, 0.5, 0 and 0. Epochs are
    averaged. Samples with an error or without a score count as not run. Runs with other task
    arguments or another solver are not re-runs. Whole samples are read only if the summaries
    truncate a text, or for option probabilities.
    """

    name = "inspect"
    files = "*.eval, or *.json logs"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the logs among files."""
        return [Unit(path) for path in files if _is_log(path)]

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the one run of a log."""
        path = unit.path
        log = read_log(path, wants.key)
        header = log.header
        scored = score_samples(log.samples)
        if not scored.items:
            raise ReaderError(
                f"{path}: no sample has a score ({_why_empty(log)})",
                hint="delete it, or leave it out with --damaged skip",
            )
        total = header.eval.dataset.samples
        if total is not None and total < len({str(sample.id) for sample in log.samples}):
            total = None  # a source of samples that goes on while it runs does not know its size
        # Equal samples are told apart by their place in this order.
        ids = header.eval.dataset.sample_ids or []
        order = {str(own_id): at for at, own_id in enumerate(ids)}
        positions = positions_of(header) if total is not None else {}
        rows = Rows(path, "sample")
        for item in sorted(
            scored.items, key=lambda item: order.get(str(item.sample.id), len(order))
        ):
            own_id = str(item.sample.id)
            rows.append(
                content_of(path, item.place, item.sample, wants.key),
                item.scores,
                item.place,
                position=positions.get(own_id, UNKNOWN),
                own_id=own_id,
                options=option_table(item.sample) if item.epochs == 1 else None,
            )
        return [
            rows.run(
                header.eval.model,
                header.eval.task,
                stamp=_stamp(path, header.eval.created),
                variant=variant_of(header),
                total=total,
                version=str(header.eval.task_version),
                settings=settings_of(header),
                task_settings=task_settings_of(header),
                harness_version=str(header.eval.packages.get("inspect_ai", "")),
                notes=notes_on(header, scored),
            )
        ]


def _is_log(path: Path) -> bool:
    if path.suffix == ".json":
        return JSON_LOG.match(head(path)) is not None
    return path.suffix == ".eval" and head(path)[:2] in (b"PK", b"")


def _stamp(path: Path, created: str) -> str:
    """Return the start time; a rescored log (`inspect score`) counts as newer."""
    again = re.search(r"-scored(?:-(\d+))?$", path.stem)
    return f"{created} scored {int(again[1] or 0):03}" if again else str(created)


def _why_empty(log: Log) -> str:
    if not log.samples:
        if log.header.eval.config.log_samples is False:
            return "run with --no-log-samples: run it again without that option"
        return f"status {log.header.status!r}, no samples"
    return f"status {log.header.status!r}, {len(log.samples)} samples without one"
