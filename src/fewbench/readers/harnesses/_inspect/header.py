"""What the header of a log says of the run: whose it is, of which part of the task, and how."""

import json
from typing import Any

from fewbench._names import some
from fewbench.readers.harnesses._inspect.scores import Scored
from fewbench.readers.settings import setting, shortened
from fewbench.scores.conditions import GENERATION

# Generation arguments that change answers and are not the model's own, as its reasoning is.
ARGUMENTS = (
    *("system_message", "temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "best_of"),
    *("num_choices", "frequency_penalty", "presence_penalty", "logit_bias", "response_schema"),
    *("extra_body",),
)
LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")


def variant_of(header: Any) -> str:
    """Return the arguments of task and solver: with others it is not a re-run."""
    spec = header.eval
    given = {f"{name}": value for name, value in sorted((spec.task_args_passed or {}).items())}
    if spec.solver:
        given["solver"] = spec.solver
        given |= {f"solver.{k}": v for k, v in sorted((spec.solver_args_passed or {}).items())}
    return shortened(", ".join(f"{k}={_text(v)}" for k, v in given.items()))


def settings_of(header: Any) -> tuple[tuple[str, str], ...]:
    """Return what of the model and its settings changes answers; never nothing, as all is known."""
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
    """Return how the task was asked, as far as it changes answers and is not the model's own."""
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
    """Return the arguments that a solver was given; those of older logs hold no defaults."""
    passed = getattr(step, "params_passed", None)
    return dict(step.params if passed is None else passed)


def positions_of(header: Any) -> dict[str, int]:
    """Return the position of each sample in the task's data; {} if the log cannot tell them.

    A log lists the samples that it ran in the order of the data, so positions are known of the
    whole data and of its first part or a range of it, but not of samples chosen by id.
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


def order_of(header: Any) -> dict[str, int]:
    """Return a place for each sample by which equal ones are told apart in the same order."""
    return {str(own_id): at for at, own_id in enumerate(header.eval.dataset.sample_ids or [])}


def notes_on(header: Any, scored: Scored) -> tuple[str, ...]:
    """Return what the user should know of a log."""
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
