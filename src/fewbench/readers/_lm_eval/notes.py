"""What a user should know of the runs that were read: sentences, most important first."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from fewbench._names import some
from fewbench.readers._lm_eval.logs import Log
from fewbench.readers._lm_eval.task import TaskAnswers


def notes_on(
    parts: list[TaskAnswers], logs: list[Log], models: list[str], no_options: str | None
) -> tuple[str, ...]:
    """Return the notes on a reading; `no_options` says why there are no option probabilities."""
    found = [*_taken(parts), *_runs(parts), *_not_run(parts, models), *_names(logs)]
    found += [*_prompts(parts), *_positions(parts)]
    if no_options is None:
        found += _misfits(parts)
    else:
        found.append(f"no option probabilities are kept: {no_options}")
    return tuple(found)


def _taken(parts: list[TaskAnswers]) -> Iterator[str]:
    tasks: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for part in parts:
        tasks[part.metric, part.filter].append(part.task)
    for (metric, filtered), names in tasks.items():
        under = f", filter {filtered!r}," if filtered not in (None, "none") else ""
        yield f"metric {metric!r}{under} of {_count(len(names), 'task')}: {some(names)}"
        unnamed = [
            str(block.log.path)
            for part in parts
            if under and part.task in names
            for block in part.blocks
            if block.filter is None
        ]
        if unnamed:
            yield f"files before lm-eval 0.4.7 do not name their filter: {some(unnamed)}"


def _runs(parts: list[TaskAnswers]) -> Iterator[str]:
    """Say which runs gave way to newer ones, and which were of a part of the task."""
    for part in parts:
        for at, block in enumerate(part.blocks):
            original, effective = block.sizes
            if (gone := part.replaced[at]) > 0:
                yield (
                    f"model {block.log.model!r}, task {part.task!r}: {gone} of {len(block)} items "
                    f"of {block.log.path.name} are taken from a newer run instead"
                )
            if effective is not None and effective != len(block):
                yield (
                    f"{block.log.path} has {_count(len(block), 'document')}, its results "
                    f"file says {effective}: a copy cut short, or a run with --samples"
                )
            elif original is not None and len(block) < original:
                yield (
                    f"model {block.log.model!r} ran {len(block)} of {original} items of task "
                    f"{part.task!r} ({block.log.path.name})"
                )


def _not_run(parts: list[TaskAnswers], models: list[str]) -> Iterator[str]:
    for at, model in enumerate(models):
        lacking = [part.task for part in parts if np.isnan(part.values[at]).all()]
        if lacking:
            yield f"model {model!r} did not run {_count(len(lacking), 'task')}: {some(lacking)}"


def _names(logs: list[Log]) -> Iterator[str]:
    """Say where a model's name or the meaning of its name is in doubt."""
    bare = [str(log.path) for log in logs if log.results is None]
    if bare:
        yield (
            f"without a results file beside: {some(bare)}; the model's name is that of its folder "
            "or of the folder's other runs, and whether higher is better is not checked"
        )
    settings: dict[str, set[tuple[tuple[str, str], ...]]] = defaultdict(set)
    for log in logs:
        if log.results:
            settings[log.model].add(tuple(sorted(log.results.arguments.items())))
    for model, several in settings.items():
        times = Counter(pair for one in several for pair in one)
        differing = sorted({key for (key, _), n in times.items() if n < len(several)})
        if differing:
            yield (
                f"runs of model {model!r} had different model arguments ({', '.join(differing)}) "
                "and are taken for one model"
            )


def _prompts(parts: list[TaskAnswers]) -> Iterator[str]:
    other: Counter[str] = sum((part.other_prompt for part in parts), Counter())
    if other:
        yield (
            "not all models saw the same prompts (few-shot examples, chat template or system "
            "instruction differ); other than most: "
            + ", ".join(f"{model!r} on {_count(n, 'item')}" for model, n in other.most_common(5))
            + (f" and {len(other) - 5} more models" if len(other) > 5 else "")
        )


def _positions(parts: list[TaskAnswers]) -> Iterator[str]:
    for part in parts:
        if part.items.moved:
            yield (
                f"task {part.task!r}: {_count(part.items.moved, 'item')} stood at different "
                "positions in different runs, so their doc_id is left empty"
            )
        unknown = sum(at is None for at in part.items.doc_ids) - part.items.moved
        if unknown:
            yield (
                f"task {part.task!r}: the positions of {_count(unknown, 'item')} are not known, "
                "because runs with --samples out of order log wrong ones; add a whole run"
            )


def _misfits(parts: list[TaskAnswers]) -> Iterator[str]:
    for part in parts:
        total = sum(part.misfits.values())
        if total:
            yield (
                f"task {part.task!r}: the logged log-likelihoods do not explain "
                f"{_count(total, 'score')} of {part.metric!r} (models {some(+part.misfits)}); "
                "take their option probabilities with care"
            )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
