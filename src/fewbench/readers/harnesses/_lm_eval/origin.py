"""Whose run a samples file is, of which task and when."""

import re
from dataclasses import dataclass

from fewbench.errors import ReaderError
from fewbench.readers.files import head
from fewbench.readers.harness import Unit
from fewbench.readers.harnesses._lm_eval.files import hub_parts, name_parts
from fewbench.readers.harnesses._lm_eval.results import NAMES, Results


@dataclass(frozen=True)
class Origin:
    """What a file's name and the results beside it say; `stamp` is "" if not known.

    `results` are those of the same run. `filters` names the task's filters in the order of the
    rows, also where only another model's results are there; [] if nothing names them.
    """

    model: str
    task: str
    stamp: str
    results: Results | None
    filters: list[str]


def identify(unit: Unit) -> Origin:
    """Find out model, task and time of a samples file.

    Raises
    ------
    ReaderError
        If results beside are torn, or the file is of a version that names its task only there.
    """
    if on_hub := hub_parts(unit.path):
        return Origin(*on_hub, "", None, [])
    task, stamp = name_parts(unit.path)
    if task is None and head(unit.path).lstrip()[:1] == b"[":
        return _before_0_4_3(unit)
    task = task or unit.path.stem
    same_run = [path for path in unit.beside if stamp and path.name.endswith(f"_{stamp}.json")]
    results = Results.read(same_run[0]) if same_run else None
    model = results.model if results else None
    if model is None:
        # Another run's results in this folder still name the model, unless they disagree.
        others = {Results.read(other).model for other in unit.beside} - {None}
        folder = unit.path.absolute().parent.name.replace("__", "/")
        model = others.pop() if len(others) == 1 else folder
    return Origin(str(model), task, stamp, results, results.filters(task) if results else [])


def _before_0_4_3(unit: Unit) -> Origin:
    """Read MODEL_ARGS_TASK.jsonl, which only the results beside can tell apart.

    A second model run into the same folder overwrote them, so they may be of another model; the
    tasks are still in them.
    """
    name = unit.path.name.removesuffix(".jsonl")
    unread: ReaderError | None = None
    for path in unit.beside:
        try:
            results = Results.read(path)
            tasks = results.part("configs")
            arguments = results.part("config").get("model_args")
        except ReaderError as error:
            unread = unread or error  # the results, torn, or a file of something else
            continue
        for task in sorted(tasks, key=len, reverse=True):
            if not name.endswith(f"_{task}"):
                continue
            written = name.removesuffix(f"_{task}")
            if isinstance(arguments, str) and written == re.sub("/|=", "__", arguments):
                return Origin(results.model or written, task, "", results, results.filters(task))
            return Origin(_model_in(written), task, "", None, results.filters(task))
    if unread:
        raise unread
    raise ReaderError(
        f"{unit.path}: written by lm-eval 0.4.2 or older, and no results file beside it tells "
        "its model from its task",
        hint="put results.json of the run beside it",
    )


def _model_in(written: str) -> str:
    """Return the model of arguments in a file's name, where / and = are both written __.

    Examples
    --------
    >>> _model_in("pretrained__org__a,dtype__float16")
    'org/a'
    """
    pairs = dict(part.split("__", 1) for part in written.split(",") if "__" in part)
    found = next((pairs[key] for key in NAMES if pairs.get(key)), written)
    return found.replace("__", "/")
