"""What the header of a log of Inspect says: settings, scorers, positions of samples."""

import json
from importlib import import_module
from inspect import Parameter, signature
from itertools import chain, count
from typing import Any

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
    given = dict(sorted((spec.task_args_passed or {}).items()))
    if spec.solver:
        given["solver"] = spec.solver
        given |= {f"solver.{k}": v for k, v in sorted((spec.solver_args_passed or {}).items())}
    return shortened(", ".join(f"{k}={_text(v)}" for k, v in given.items()))


def settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return how the model was run."""
    spec = header.eval
    found: dict[str, Any] = {"model": spec.model, **(spec.model_args or {})}
    for config in (spec.model_generate_config, header.plan.config):
        if config is not None:
            found |= config.model_dump(exclude_none=True)
    if spec.model_base_url:
        found["model_base_url"] = spec.model_base_url
    found |= {f"role {role}": _names_of(one) for role, one in (spec.model_roles or {}).items()}
    return tuple((key, shortened(_text(found[key]))) for key in sorted(found))


def task_settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return the settings of a task that change answers or scores; see `scorer_of` for scorers.

    `header` has an eval and a plan.
    """
    spec, plan = header.eval, header.plan
    solvers = []
    for step in plan.steps:
        passed = getattr(step, "params_passed", None)  # absent in older logs
        given = dict(step.params if passed is None else passed)
        solvers.append(
            " ".join([step.solver, *(f"{k}={setting(given[k])}" for k in sorted(given))])
        )
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
    for role, models in (getattr(spec, "model_roles", None) or {}).items():
        found[f"role: {role}"] = setting(_names_of(models))
    epochs = spec.config.epochs or 1
    reducer = f" ({own_reducer(spec.config.epochs_reducer) or 'mean'})" if epochs > 1 else ""
    found[f"{SCORING}epochs"] = f"{epochs}{reducer}"
    return tuple(sorted(found.items()))


def _names_of(models: Any) -> str:
    listed = models if isinstance(models, list) else [models]
    return ", ".join(str(getattr(one, "model", one)) for one in listed)


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
    found = []
    for name, scorer in _named_scorers(header):
        given = scorer.metrics or []
        several = [given] if isinstance(given, dict) else given
        keys = [key for one in several if isinstance(one, dict) for key in one]
        found += [f"{name}.{key}" for key in keys] if keys else [name]
    return found


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
    made = getattr(import_module("inspect_ai.scorer"), scorer, None)
    parameters = signature(made).parameters if callable(made) else {}
    return {
        name: setting(one.default)
        for name, one in parameters.items()
        if one.default is not Parameter.empty
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
