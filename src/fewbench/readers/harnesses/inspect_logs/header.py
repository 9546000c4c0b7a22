"""What the header of a log of Inspect says: settings, scorers, positions of samples."""

import json
from importlib import import_module
from inspect import Parameter, signature
from itertools import chain, count
from typing import Any

from fewbench._names import some
from fewbench._text import SECRET, masked_arguments
from fewbench.readers.harnesses.inspect_logs.scores import own_reducer
from fewbench.readers.values import called, setting, shortened
from fewbench.scores.conditions import GENERATION, SCORING

# Generation arguments that change answers and are not the model's own, as its reasoning is.
ARGUMENTS = (
    *("system_message", "temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "best_of"),
    *("num_choices", "frequency_penalty", "presence_penalty", "logit_bias", "response_schema"),
    *("extra_body",),
)
LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")
MARK = "fewbench"
"""Entry of a log's metadata that says that fewbench chose the samples."""


def variant_of(header: Any) -> str:
    """Return the task arguments and the solver, which tell runs of one task apart."""
    spec = header.eval
    arguments = dict(sorted(_without_keys(spec.task_args_passed).items()))
    if spec.solver:
        arguments["solver"] = spec.solver
        of_solver = _without_keys(spec.solver_args_passed)
        arguments |= {f"solver.{k}": v for k, v in sorted(of_solver.items())}
    return shortened(", ".join(f"{k}={_text(v)}" for k, v in arguments.items()))


def settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return how the model was run."""
    spec = header.eval
    settings: dict[str, Any] = {"model": spec.model, **_without_keys(spec.model_args)}
    for config in (spec.model_generate_config, header.plan.config):
        if config is not None:
            settings |= config.model_dump(exclude_none=True)
    if spec.model_base_url:
        settings["model_base_url"] = masked_arguments(spec.model_base_url)
    settings |= {f"role {role}": _names_of(used) for role, used in (spec.model_roles or {}).items()}
    return tuple((key, shortened(_text(settings[key]))) for key in sorted(settings))


def task_settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return the settings of a task that change answers or scores; see `scorer_of` for scorers.

    `header` has an eval and a plan.
    """
    spec, plan = header.eval, header.plan
    solvers = []
    for step in plan.steps:
        passed = getattr(step, "params_passed", None)  # absent in older logs
        args = _without_keys(step.params if passed is None else passed)
        solvers.append(" ".join([step.solver, *(f"{k}={setting(args[k])}" for k in sorted(args))]))
    settings = {
        "task version": setting(str(spec.task_version)),
        "solver": shortened(", ".join(solvers)),
    }
    settings |= {
        f"task argument: {name}": setting(value)
        for name, value in _without_keys(spec.task_args_passed).items()
    }
    for config in (spec.model_generate_config, plan.config):
        args = {} if config is None else config.model_dump(exclude_none=True)
        settings |= {GENERATION + name: setting(args[name]) for name in ARGUMENTS if name in args}
    for name in LIMITS:
        if getattr(spec.config, name, None) is not None:
            settings[f"limit: {name}"] = setting(getattr(spec.config, name))
    for role, models in (getattr(spec, "model_roles", None) or {}).items():
        settings[f"role: {role}"] = setting(_names_of(models))
    epochs = spec.config.epochs or 1
    reducer = f" ({own_reducer(spec.config.epochs_reducer) or 'mean'})" if epochs > 1 else ""
    settings[f"{SCORING}epochs"] = f"{epochs}{reducer}"
    return tuple(sorted(settings.items()))


def _without_keys(arguments: Any) -> dict[str, Any]:
    """Return arguments but keys, which change no answers and belong into no table."""
    return {name: value for name, value in (arguments or {}).items() if not SECRET.search(name)}


def _names_of(models: Any) -> str:
    listed = models if isinstance(models, list) else [models]
    return ", ".join(str(getattr(model, "model", model)) for model in listed)


def scorer_of(header: Any, metric: str) -> str | None:
    """Return the scorer of a metric and its options, None if the header does not state them.

    A metric is a scorer's name, or SCORER.KEY. Inspect numbers scorers of one name.
    """
    for name, scorer in _named_scorers(header):
        if name in (metric, metric.partition(".")[0]):
            plain = scorer.name.rpartition("/")[2]
            return called(plain, scorer.options or {}, _defaults_of(plain))
    return None


def metrics_of(header: Any) -> list[str]:
    """Return the metrics that the scorers of a header give; SCORER.* where keys are not known."""
    metrics = []
    for name, scorer in _named_scorers(header):
        stated = scorer.metrics or []
        several = [stated] if isinstance(stated, dict) else stated
        keys = [key for part in several if isinstance(part, dict) for key in part]
        metrics += [f"{name}.{key}" for key in keys] if keys else [name]
    return metrics


def groupings_of(header: Any) -> dict[str, str]:
    """Return the fields of samples' metadata by which metrics are grouped, and how these become
    one score: "samples" or "groups".
    """
    stated = [header.eval.metrics or [], *(one.metrics or [] for one in header.eval.scorers or [])]
    found: dict[str, str] = {}
    while stated:
        metric = stated.pop(0)
        if isinstance(metric, dict):
            stated = [*metric.values(), *stated]
        elif isinstance(metric, list):
            stated = [*metric, *stated]
        elif metric.name.rpartition("/")[2] == "grouped" and metric.options:
            key, how = metric.options.get("group_key"), metric.options.get("all", "samples")
            found |= {str(key): str(how)} if key and str(key) not in found else {}
    return found


def notes_on_groups(header: Any) -> list[str]:
    """Say which groups are tasks, of several fields, and what Inspect's own score is."""
    found, notes = groupings_of(header), list[str]()
    keys = [*found]
    if len(keys) > 1:
        notes.append(f"groups by {keys[0]!r} are tasks here; those by {some(keys[1:])} are not")
    if keys and found[keys[0]] == "groups":
        notes.append(
            f"Inspect's own score is the mean of the groups by {keys[0]!r}; here it is that of the "
            "samples: --average macro counts all tasks the same"
        )
    return notes


def _named_scorers(header: Any) -> list[tuple[str, Any]]:
    """Return scorers with the names that scores have; those of one name are numbered."""
    named: dict[str, Any] = {}
    for scorer in header.eval.scorers or []:
        plain = scorer.name.rpartition("/")[2]
        numbered = chain([plain], (f"{plain}{n}" for n in count(1)))
        named[next(name for name in numbered if name not in named)] = scorer
    return list(named.items())


def _defaults_of(scorer: str) -> dict[str, str]:
    """Return the defaults of a scorer's options, {} if it is none of Inspect's own."""
    function = getattr(import_module("inspect_ai.scorer"), scorer, None)
    parameters = signature(function).parameters if callable(function) else {}
    return {
        name: setting(parameter.default)
        for name, parameter in parameters.items()
        if parameter.default is not Parameter.empty
    }


def positions_of(header: Any) -> dict[str, int]:
    """Return positions in the dataset; {} if the samples were shuffled or chosen by id."""
    dataset, config = header.eval.dataset, header.eval.config
    shuffled = dataset.shuffled or config.sample_shuffle not in (None, False)
    ids = dataset.sample_ids or []
    if shuffled or config.sample_id is not None:
        return {}
    first = config.limit[0] if isinstance(config.limit, list | tuple) else 0
    if config.limit is None and len(ids) != dataset.samples:
        return {}
    return {str(own_id): first + at for at, own_id in enumerate(ids)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
