"""Inspect: .eval and .json logs, read with Inspect's own reader."""

import json
import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from itertools import chain, count
from pathlib import Path
from typing import Any

from fewbench._names import some
from fewbench.errors import MissingExtraError, ReaderError, first_line
from fewbench.readers.files import head
from fewbench.readers.harness import UNKNOWN, Rows, Run, Unit, Wants
from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.values import called, content_id, field_value, setting, shortened
from fewbench.scores.conditions import GENERATION, SCORING
from fewbench.scores.replies import KINDS, from_model

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
LETTERS = string.ascii_uppercase
MARK = "fewbench"
"""Entry of a log's metadata that says that fewbench chose the samples."""
MEDIA = ("image", "audio", "video", "document", "data")
NOT_LOGGED = "<base64-data-removed>"
BEFORE = re.compile(r"answer\s*:\s*[*$({]*\s*$", re.IGNORECASE)
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class InspectLogs:
    """Read logs of Inspect and of `lighteval eval`; needs `fewbench[inspect]`.

    An item is a sample, identified by its input, choices and right answers. Each scorer is a
    metric, SCORER.KEY if it returns several values; C, P, I and N count 1, 0.5, 0 and 0. Epochs are
    reduced by the task's reducer, or averaged if it has several. Samples with an error or without a
    score count as not run. Runs with other task arguments or another solver are not re-runs. Whole
    samples are read only if the summaries truncate a text, for option probabilities, or to see how
    replies ended.
    """

    name = "inspect"
    files = "*.eval, or *.json logs"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the logs among files."""
        return [Unit(path) for path in files if _is_log(path)]

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the one run of a log."""
        path = unit.path
        log = _read_log(path, wants)
        header = log.header
        scored = _score_samples(log.samples, header.eval.config.epochs_reducer)
        if not scored.items:
            why = f"status {header.status!r}, {len(log.samples)} samples without one"
            if not log.samples and header.eval.config.log_samples is False:
                why = "run with --no-log-samples: run it again without that option"
            elif not log.samples:
                why = f"status {header.status!r}, no samples"
            raise ReaderError(
                f"{path}: no sample has a score ({why})",
                hint="delete the log, or skip it with --damaged skip",
            )
        total = header.eval.dataset.samples
        if total is not None and total < len({str(sample.id) for sample in log.samples}):
            total = None  # samples were generated during the run
        # Equal samples differ by their place in this order.
        ids = header.eval.dataset.sample_ids or []
        order = {str(own_id): at for at, own_id in enumerate(ids)}
        positions = _positions_of(header) if total is not None else {}
        rows = Rows(path, "sample")
        for item in sorted(
            scored.items, key=lambda item: order.get(str(item.sample.id), len(order))
        ):
            sample, own_id = item.sample, str(item.sample.id)
            if wants.key:
                fields = {"id": sample.id, "input": sample.input} | (sample.metadata or {})
                where = f"{path}, sample {item.place} (id {sample.id!r})"
                content = field_value(fields, wants.key, where)
            else:
                content = content_id(*content_of(sample))
            answer, choices = answer_key(sample)
            rows.append(
                content,
                item.scores,
                item.place,
                position=positions.get(own_id, UNKNOWN),
                own_id=own_id,
                answer=answer,
                choices=choices,
                options=option_table(sample) if item.epochs == 1 else None,
                reply=item.reply,
            )
        return [
            rows.run(
                header.eval.model,
                header.eval.task,
                stamp=_stamp(path, header.eval.created),
                variant=_variant_of(header),
                total=total,
                version=str(header.eval.task_version),
                settings=_settings_of(header),
                task_settings=task_settings_of(header),
                scorers={
                    metric: text
                    for metric in rows.values
                    if (text := scorer_of(header, metric)) is not None
                },
                harness_version=str(header.eval.packages.get("inspect_ai", "")),
                notes=_notes_on(header, scored),
            )
        ]


@dataclass(frozen=True)
class _Log:
    header: Any
    samples: Sequence[Any]


def _read_log(path: Path, wants: Wants) -> _Log:
    """Read a log: header and summaries if they suffice, else whole samples."""
    try:
        inspect_log = import_module("inspect_ai.log")
    except ImportError as error:
        raise MissingExtraError(
            "reading Inspect logs needs inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    try:
        if path.suffix == ".json":
            log = inspect_log.read_eval_log(str(path))
            return _Log(log, log.samples or [])
        header = inspect_log.read_eval_log(str(path), header_only=True)
        summaries = inspect_log.read_eval_log_sample_summaries(str(path))
        if not (wants.replies or _needs_samples(header, summaries, wants.key)):
            return _Log(header, summaries)
        read = inspect_log.read_eval_log
        sparing = "exclude_fields" in signature(read).parameters  # not in 0.3.200
        whole = read(str(path), **({"exclude_fields": set(UNREAD)} if sparing else {}))
        return _Log(header, whole.samples or [])
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


def _variant_of(header: Any) -> str:
    spec = header.eval
    given = dict(sorted((spec.task_args_passed or {}).items()))
    if spec.solver:
        given["solver"] = spec.solver
        given |= {f"solver.{k}": v for k, v in sorted((spec.solver_args_passed or {}).items())}
    return shortened(", ".join(f"{k}={_text(v)}" for k, v in given.items()))


def _settings_of(header: Any) -> tuple[tuple[str, str], ...]:
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
    reducer = f" ({_own_reducer(spec.config.epochs_reducer) or 'mean'})" if epochs > 1 else ""
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


def _positions_of(header: Any) -> dict[str, int]:
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


def _notes_on(header: Any, scored: "_Scored") -> tuple[str, ...]:
    notes = []
    if header.status != "success":
        error = getattr(header.error, "message", None)
        why = f": {str(error).strip().splitlines()[0]}" if error and str(error).strip() else ""
        notes.append(
            f"the run did not finish (status {header.status!r}{why}); its answers are used"
        )
    stopping = getattr(header.results, "early_stopping", None)
    if stopping is not None:
        notes.append(
            f"{stopping.manager!r} stopped the run after {len(scored.items)} items because of "
            "their scores, so their mean is not the task's"
        )
    if MARK in (header.eval.metadata or {}):
        notes.append("fewbench chose the items, so their mean is not the task's")
    epochs = {item.epochs for item in scored.items}
    if epochs - {1}:
        reducers = header.eval.config.epochs_reducer or ["mean"]
        own = "" if reducers == ["mean"] else f"; Inspect's own score takes {', '.join(reducers)}"
        uneven = ", fewer for some items" if len(epochs) > 1 else ""
        if reducer_of(reducers) is not None:
            notes.append(f"scores are {reducers[0]} of {max(epochs)} epochs{uneven}")
        else:
            notes.append(f"scores are means over {max(epochs)} epochs{uneven}{own}")
    for own_ids, why in (
        (scored.failed, "ended in an error"),
        (scored.unscored, "have no score"),
        *((own_ids, f"have no score of {metric!r}") for metric, own_ids in scored.lacking.items()),
    ):
        if own_ids:
            notes.append(f"samples that {why} count as not run ({len(own_ids)}): {some(own_ids)}")
    if scored.despite_errors:
        notes.append(f"{scored.despite_errors} samples ended in an error but have a score")
    if getattr(header, "invalidated", False):
        notes.append("samples of this log are marked as invalid; they are used nevertheless")
    return tuple(notes)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _is_log(path: Path) -> bool:
    if path.suffix == ".json":
        return JSON_LOG.match(head(path)) is not None
    return path.suffix == ".eval" and head(path)[:2] in (b"PK", b"")


def _stamp(path: Path, created: str) -> str:
    """Return the start time; a rescored log (`inspect score`) counts as newer."""
    again = re.search(r"-scored(?:-(\d+))?$", path.stem)
    return f"{created} scored {int(again[1] or 0):03}" if again else str(created)


def _answer_indices(sample: Any) -> list[int]:
    choices = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    letters = [one for target in targets for one in target.replace(",", " ").split()]
    if not all(len(one) == 1 and one in LETTERS[: len(choices)] for one in letters):
        return []
    return [LETTERS.index(one) for one in letters]


def content_of(sample: Any) -> list[str]:
    """Return the texts that identify a sample: input, choices, right answers, media."""
    choices, right = _key_texts(sample)
    if isinstance(sample.input, str):
        return [sample.input.strip(), *choices, *right]
    texts, media = [], []
    for message in sample.input:
        parts = message.content
        for part in [parts] if isinstance(parts, str) else parts:
            text = part if isinstance(part, str) else getattr(part, "text", None)
            if text is not None:
                texts.append(text.strip())
            else:
                media += [str(getattr(part, name)) for name in MEDIA if hasattr(part, name)]
    if any(NOT_LOGGED in one for one in media):  # then only the id tells such samples apart
        media.append(str(sample.id))
    return ["\n".join(texts), *choices, *right, *media]


def answer_key(sample: Any) -> tuple[str | None, list[str]]:
    """Return the right answers of a sample as one text, None if truncated, and its choices."""
    choices, right = _key_texts(sample)
    is_cut = any(text.endswith(CUT) for text in _texts(sample.target))
    return None if is_cut else "\x1f".join(right), choices


def _key_texts(sample: Any) -> tuple[list[str], list[str]]:
    choices = [str(choice).strip() for choice in sample.choices or []]
    right = [choices[at] for at in _answer_indices(sample)]
    if not right:
        targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
        right = [target.strip() for target in targets]
    return choices, right


def reply_kind(sample: Any) -> str:
    """Return whether a sample's last reply is cut, filtered or another model's; "" if unknown."""
    output = getattr(sample, "output", None)
    if output is None:
        return ""
    kind = KINDS.get(str(output.choices[0].stop_reason), "") if output.choices else ""
    fallback = getattr(output, "fallback", None)  # absent in older versions
    return kind or (from_model(fallback.fallback_model) if fallback is not None else "")


def option_table(sample: Any) -> OptionTable | None:
    """Return the log-probability of each option's letter at the answer, or None if unclear.

    The answer must be "ANSWER: X" with X a token of its own, and all letters among the logged
    likely tokens. Several answers and shuffled options give None.
    """
    choices = sample.choices or []
    output = getattr(sample, "output", None)
    if not 2 <= len(choices) <= len(LETTERS) or output is None or len(output.choices) != 1:
        return None
    if any("shuffled" in (one.explanation or "") for one in (sample.scores or {}).values()):
        return None
    logprobs = output.choices[0].logprobs
    tokens = logprobs.content if logprobs is not None else []
    letters = LETTERS[: len(choices)]
    for at in range(len(tokens) - 1, -1, -1):
        said = tokens[at].token.strip()
        if len(said) == 1 and said in letters:
            break
    else:
        return None
    if not BEFORE.search("".join(token.token for token in tokens[:at])):
        return None
    likely: dict[str, list[float]] = {letter: [] for letter in letters}
    for other in tokens[at].top_logprobs or []:
        if other.token.strip() in likely:  # " A" and "A" are the same answer
            likely[other.token.strip()].append(other.logprob)
    if not all(likely.values()):
        return None
    right = _answer_indices(sample)
    return OptionTable(
        [_sum(values) for values in likely.values()],
        right[0] if len(right) == 1 else NO_ANSWER,
        [str(choice) for choice in choices],
    )


def _sum(values: list[float]) -> float:
    most = max(values)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum(math.exp(value - most) for value in values))


@dataclass
class _Answered:
    sample: Any
    place: int
    scores: dict[str, Any]
    epochs: int = 1
    reply: str = ""


@dataclass
class _Scored:
    items: list[_Answered] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    despite_errors: int = 0


def _score_samples(samples: Sequence[Any], reducers: Sequence[str] | None) -> _Scored:
    """Return the items that have all scores, reduced over epochs.

    An item without an answer, or without a score that most items have, counts as not run.
    """
    found = _Scored()
    by_id: dict[str, list[tuple[int, Any, dict[str, Any]]]] = defaultdict(list)
    troubled: dict[str, bool] = {}
    for place, sample in enumerate(samples, start=1):
        own_id = str(sample.id)
        scores = scores_of(sample.scores or {})
        if scores:
            by_id[own_id].append((place, sample, scores))
            found.despite_errors += bool(sample.error)
        else:
            troubled[own_id] = troubled.get(own_id, False) or bool(sample.error)
    for own_id, failed in troubled.items():
        if own_id not in by_id:
            (found.failed if failed else found.unscored).append(own_id)
    counts: Counter[str] = Counter()
    for rows in by_id.values():
        counts.update({metric for _, _, scores in rows for metric in scores})
    reducer = reducer_of(reducers)
    usual = [metric for metric, n in counts.items() if 2 * n > len(by_id)]
    for own_id, rows in by_id.items():
        if reducer is None:
            scores = _mean([scores for _, _, scores in rows])
        else:
            scores = reduce_epochs([sample.scores for _, sample, _ in rows], reducer)
        absent = [metric for metric in usual if metric not in scores]
        for metric in absent:
            found.lacking.setdefault(metric, []).append(own_id)
        if not absent:
            place, sample, _ = rows[0]
            reply = next(filter(None, (reply_kind(one) for _, one, _ in rows)), "")
            found.items.append(_Answered(sample, place, scores, len(rows), reply))
    return found


def reduce_epochs(epochs: Sequence[Mapping[str, Any]], reducer: Any = None) -> dict[str, Any]:
    """Return metric → value of a sample, from the scores (scorer → score) of each of its epochs.

    Means, unless there is another reducer (see `reducer_of`).
    """
    if reducer is None:
        return _mean([scores_of(scores) for scores in epochs])
    scorers = dict.fromkeys(name for scores in epochs for name in scores)
    return scores_of(
        {name: reducer([one[name] for one in epochs if name in one]) for name in scorers}
    )


def _own_reducer(reducers: Sequence[str] | None) -> str:
    return reducers[0] if reducers and len(reducers) == 1 and reducers[0] != "mean" else ""


def reducer_of(reducers: Sequence[str] | None) -> Any:
    """Return the name of Inspect's reducer if it is the only one and not the mean.

    None also for a task's own reducer, which is known only where the task is loaded.
    """
    name = _own_reducer(reducers)
    if not name:
        return None
    try:
        found = import_module("inspect_ai").Epochs(1, [name]).reducer
    except Exception:  # of the registry, by version
        return None
    return found[0]


def scores_of(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return metric → value: a scorer's own name, or SCORER.KEY where it scores several things.

    Examples
    --------
    >>> class Score:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> scores_of({"match": Score("C"), "parts": Score({"f1": 0.5, "em": "I"}), "b": Score([1])})
    {'match': 1.0, 'parts.f1': 0.5, 'parts.em': 0.0, 'b': [1]}
    """
    found: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.value
        several = (
            {f"{name}.{key}": one for key, one in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for metric, one in several.items():
            number = _as_score(one)
            # Inspect writes NaN for what a scorer left unscored.
            if number is not None and not (isinstance(number, float) and math.isnan(number)):
                found[metric] = number
    return found


def _as_score(value: Any) -> Any:
    """Return a score as Inspect counts it: letters and words as numbers, what else it is as is.

    Examples
    --------
    >>> [_as_score(value) for value in ("C", "P", "N", "yes", True, "0.25", 3, "B")]
    [1.0, 0.5, 0.0, 1.0, 1.0, 0.25, 3.0, 'B']
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return value
    if value in GRADES:
        return GRADES[value]
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return float(value)
    except ValueError:
        return value


def _mean(epochs: list[dict[str, Any]]) -> dict[str, Any]:
    if len(epochs) == 1:
        return epochs[0]
    found: dict[str, Any] = {}
    for metric in dict.fromkeys(name for one in epochs for name in one):
        values = [one[metric] for one in epochs if metric in one]
        other = [value for value in values if not isinstance(value, float)]
        found[metric] = other[0] if other else math.fsum(values) / len(values)
    return found
