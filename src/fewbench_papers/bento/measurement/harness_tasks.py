"""Read tasks of lm-eval and Inspect as questions that a template can show.

lm-eval, from what its task manager loads; nothing depends on single tasks:

- The text of a question is the task's `doc_to_text`. A cue at its end, such as "Answer:", is left
  to the template: a last line that ends with a colon and is the same in all questions.
- `multiple_choice`: `doc_to_choice` gives the options and `doc_to_target` the right one. If the
  options are the letters A, B, …, or the text shows each option after its letter, a template adds
  no options.
- If all right options stand at one position, a letter would reveal the answer: a hash of the text
  then decides the order of the options.
- `generate_until` and `loglikelihood`: the target is the answer, without filters. If there are
  several targets, the first is the answer and the others are accepted too.
- The documents that lm-eval scores (test, or else validation) are scored, with their position as
  id, as in its logs. Exemplars come from its few-shot documents, at most 1,000 at equal steps,
  without those that are scored.
- The task's description, if it has one, is the instruction.
- Rolling perplexity, options that are whole prompts, several right options, images and sound are
  refused.

Inspect, from a dataset file or the dataset of a task in a Python file: a sample's input is the
question, its choices are the options, its target is the answer (a letter or an option's text). For
an open question, the first target is the answer and the others are accepted too. Texts of several
messages are joined by blank lines. Samples with `split` "train" or "pool" in their metadata are
exemplars.
"""

import hashlib
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

from fewbench.errors import FewbenchError, MissingExtraError, TransferError, first_line
from fewbench.runners.questions import LETTERS, Question, made, right_option
from fewbench.support import quoted, some
from fewbench_papers.bento.measurement.prompts import IN_POOL, MeasuredTask, check_apart, subject_of

MOST_IN_POOL = 1000
ENOUGH_TO_TELL = 5  # with fewer questions, right options at one position may be chance
HIDDEN = "the labels of this data set may be hidden"
INSTEAD = "leave the task out, or write it as JSON lines"
CUE = re.compile(r"\n([^\n]*[:：])\s*$")


def read_lm_eval(
    names: Sequence[str], include_path: str | Path | None = None
) -> dict[str, list[MeasuredTask]]:
    """Return the lm-eval tasks of each name: a task, or all of a group or tag.

    Parameters
    ----------
    names : sequence of str
    include_path : path, optional
        A folder with more tasks, which take precedence over lm-eval's own.

    Raises
    ------
    MissingExtraError
        If lm-eval is not installed.
    TransferError
        If a name is unknown, or a task cannot be loaded or asked.
    """
    harness = _imported("lm_eval.tasks", "lm-eval")
    if include_path is not None and not Path(include_path).is_dir():
        raise TransferError(
            f"--include-path {quoted(include_path)}: no such folder", kind="missing"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data sets and tasks
        try:
            manager = _manager(harness, names, include_path)
        except Exception as error:  # a YAML file anywhere below the folder
            raise TransferError(f"lm-eval cannot list its tasks: {_said(error)}") from error
        return {name: _load(manager, name) for name in names}


def _imported(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"reading tasks of {extra} needs {extra}, which is not installed",
            hint=f"pip install 'fewbench[{extra}]'",
        ) from error


def _manager(harness: Any, names: Sequence[str], include_path: str | Path | None) -> Any:
    if include_path is not None:
        # lm-eval's own 14,000 names take 10 s to list; not needed for plain tasks of the folder
        manager = harness.TaskManager(include_path=str(include_path), include_defaults=False)
        if set(names) <= set(manager.all_subtasks):
            return manager
        return harness.TaskManager(include_path=str(include_path))
    return harness.TaskManager()


def _load(manager: Any, name: str) -> list[MeasuredTask]:
    if name not in manager.all_tasks:
        close = get_close_matches(name, manager.all_tasks, n=3)
        raise TransferError(
            f"lm-eval has no task, group or tag {name!r}",
            hint=f"did you mean {some(close)}?"
            if close
            else "see lm_eval ls tasks; --include-path adds your own tasks",
        )
    try:
        tasks = manager.load(name)["tasks"]
    except Exception as error:  # a task's own code or data can raise anything
        raise TransferError(
            f"lm-eval cannot load {name!r}: {_said(error)}",
            hint="check that lm-eval can run it here; data sets come from the Hugging Face hub or "
            "its cache",
        ) from error
    if not tasks:
        raise TransferError(f"lm-eval:{name}: holds no tasks")
    return [_task(task_name, task) for task_name, task in tasks.items()]


@dataclass
class _Doc:
    """A document as lm-eval gives it."""

    id: str
    text: str
    options: list[str]
    answer: int | str
    also: tuple[str, ...] = ()


def _task(name: str, task: Any) -> MeasuredTask:
    where = f"task {name!r} of lm-eval"
    try:
        return _converted(name, task, where)
    except FewbenchError:
        raise
    except Exception as error:  # a task's own functions can raise anything
        raise TransferError(
            f"{where}: its documents cannot be read: {_said(error)}",
            hint=INSTEAD,
        ) from error


def _converted(name: str, task: Any, where: str) -> MeasuredTask:
    _check_kind(task, where)
    scored_docs = list(task.eval_docs)
    spared = list(_spread(task.fewshot_docs()))
    shots = getattr(task, "fewshot_cfg", None)
    scored = [_document(task, doc, str(i), where) for i, doc in enumerate(scored_docs)]
    pool = [_document(task, doc, f"pool-{i}", where, shots) for i, doc in enumerate(spared)]
    instruction, asides = _descriptions(task, scored_docs)
    if asides:
        for document, aside in zip([*scored, *pool], asides, strict=False):
            document.text = aside + document.text
    _drop_cue([*scored, *pool])
    _mix_options(scored, pool)
    questions = [_question(doc, where) for doc in scored]
    contents = {question.content for question in questions}
    exemplars = [_question(doc, where) for doc in pool]
    alias = getattr(task.config, "task_alias", None)
    return made(
        MeasuredTask,
        where,
        name=name,
        subject=subject_of(alias if isinstance(alias, str) and alias else name),
        instruction=instruction,
        questions=tuple(questions),
        pool=tuple(exemplar for exemplar in exemplars if exemplar.content not in contents),
    )


def _check_kind(task: Any, where: str) -> None:
    problem = None
    if task.OUTPUT_TYPE == "loglikelihood_rolling":
        problem = "has only texts to read, no questions"
    elif any(getattr(task.config, kind, None) for kind in ("doc_to_image", "doc_to_audio")):
        problem = "uses images or sound"
    elif getattr(task, "multiple_input", 0):
        problem = "has whole prompts as options"
    if problem:
        raise TransferError(f"{where}: {problem}", hint=INSTEAD)


def _spread(docs: Any) -> Iterable[Any]:
    """Return documents at equal steps, at most MOST_IN_POOL."""
    if docs is None:
        return ()
    step = -(-len(docs) // MOST_IN_POOL) or 1
    return islice(iter(docs), 0, None, step)


def _document(task: Any, doc: Any, name: str, where: str, shots: Any = None) -> _Doc:
    """Read a document; `shots` may hold other fields for few-shot documents."""
    place = f"{where}, document {name}"
    text, target, choice = (
        [getattr(shots, kind, None)] if getattr(shots, kind, None) is not None else []
        for kind in ("doc_to_text", "doc_to_target", "doc_to_choice")
    )
    question, right = task.doc_to_text(doc, *text), task.doc_to_target(doc, *target)
    if not isinstance(question, str):
        raise TransferError(f"{place}: its text is of type {type(question).__name__}, not a text")
    multiple = task.OUTPUT_TYPE == "multiple_choice"
    options: list[str] = []
    if multiple or getattr(task.config, "doc_to_choice", None) is not None:
        options = [str(option) for option in task.doc_to_choice(doc, *choice)]
    answers = [
        options[key] if isinstance(key, int) and 0 <= key < len(options) and not multiple else key
        for key in (right if isinstance(right, list) else [right])
    ]
    if not multiple:
        texts = [str(value).strip() for value in answers]
        if not any(texts):
            raise TransferError(f"{place}: has no answer", hint=HIDDEN)
        return _Doc(name, question, [], texts[0], tuple(texts[1:]))
    if len(answers) != 1:
        raise TransferError(f"{place}: has {len(answers)} right options; only one is allowed")
    answer = options.index(answers[0]) if answers[0] in options else answers[0]
    if not isinstance(answer, int) or not 0 <= answer < len(options):
        raise TransferError(
            f"{place}: its answer {answer!r} is none of the options {some(options)}",
            hint=HIDDEN,
        )
    return _Doc(name, question, [option.strip() for option in options], int(answer))


def _descriptions(task: Any, docs: Sequence[Any]) -> tuple[str | None, list[str]]:
    """Return the task's instruction, or a description to put before each scored question."""
    description = getattr(task.config, "description", None)
    if not description:
        return None, []
    if "{{" not in description and "{%" not in description and description not in docs[0]:
        return description, []
    each = [str(task.resolve_field(doc, description)) for doc in docs]
    return (each[0], []) if len(set(each)) == 1 else (None, each)


def _drop_cue(docs: Sequence[_Doc]) -> None:
    """Remove a last line that ends with a colon and is the same in all documents."""
    cues = [CUE.search(doc.text) for doc in docs]
    if len(docs) > 1 and len({cue[1] if cue else None for cue in cues}) == 1 and cues[0]:
        for doc, cue in zip(docs, cues, strict=True):
            doc.text = doc.text[: cue.start()] if cue else doc.text
    for doc in docs:
        doc.text = doc.text.strip()


def _mix_options(scored: Sequence[_Doc], pool: Sequence[_Doc]) -> None:
    """Order options by a hash if the right ones all stand at one position."""
    if len(scored) < ENOUGH_TO_TELL or len({doc.answer for doc in scored}) > 1:
        return
    for doc in [*scored, *pool]:
        if doc.options and not _shows_options(doc):
            texts = [
                f"{doc.text}\0{option}".encode(errors="surrogatepass") for option in doc.options
            ]
            hashes = [hashlib.sha256(text).digest() for text in texts]
            order = sorted(range(len(hashes)), key=hashes.__getitem__)
            doc.options = [doc.options[i] for i in order]
            doc.answer = order.index(int(doc.answer))


def _shows_options(doc: _Doc) -> bool:
    letters = list(LETTERS[: len(doc.options)])
    if [option.strip("().:") for option in doc.options] == letters:
        return True
    return all(
        re.search(rf"(?:^|[\s(]){letter}[.):]\s*{re.escape(option)}", doc.text)
        for letter, option in zip(letters, doc.options, strict=False)
    )


def _question(doc: _Doc, where: str) -> Question:
    return made(
        Question,
        f"{where}, document {doc.id}",
        id=doc.id,
        text=doc.text,
        options=tuple(doc.options),
        answer=doc.answer,
        also=doc.also,
        options_in_text=bool(doc.options) and _shows_options(doc),
    )


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"


def read_inspect(name: str) -> MeasuredTask:
    """Return the task of an Inspect dataset file, or of a function in a Python file.

    Parameters
    ----------
    name : str
        FILE.json, FILE.jsonl or FILE.csv with the fields of Inspect's samples; the task takes the
        file's name. FILE.py@TASK runs the file and calls its function TASK without arguments.

    Raises
    ------
    MissingExtraError
        If Inspect is not installed.
    TransferError
        If there is no such file or task, or a sample cannot be used as a question.
    """
    datasets = _imported("inspect_ai.dataset", "inspect")
    file, at, function = name.rpartition("@")
    path = Path(file if at and file.endswith(".py") else name)
    if not path.is_file():
        raise TransferError(f"inspect:{name}: no such file {path}")
    json_lines, csv = datasets.json_dataset, datasets.csv_dataset
    readers = {".json": json_lines, ".jsonl": json_lines, ".csv": csv}
    if path.suffix == ".py":
        if not function or not at:
            raise TransferError(
                f"inspect:{name}: no task is named",
                hint=f"write inspect:{path}@TASK with the name of a function; this runs the file",
            )
        return _task_of_samples(function, f"{path}@{function}", _dataset_of(path, function))
    if path.suffix not in readers:
        raise TransferError(
            f"inspect:{name}: not an Inspect dataset",
            hint="give a .json, .jsonl or .csv file, or FILE.py@TASK",
        )
    try:
        samples = list(readers[path.suffix](str(path)))
    except Exception as error:  # Inspect has no error type of its own for this
        raise TransferError(
            f"{path}: Inspect cannot read this dataset ({first_line(error)})",
            hint="a record has the fields input and target, and optionally choices, id, metadata",
        ) from error
    return _task_of_samples(path.stem, str(path), samples)


def _dataset_of(path: Path, function: str) -> list[Any]:
    where = f"inspect:{path}@{function}"
    spec = spec_from_file_location(f"fewbench_inspect_{path.stem}", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # as Inspect does, for files that it imports
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
            loader = getattr(module, function, None)
            if not callable(loader):
                raise TransferError(
                    f"{where}: the file has no function {function!r}",
                    hint="name a function that returns an Inspect task",
                )
            return list(loader().dataset)
    except TransferError:
        raise
    except (Exception, SystemExit) as error:  # the file's own code
        raise TransferError(
            f"{where}: does not run ({_said(error)})",
            hint="the function must work without arguments and return a task with a dataset",
        ) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _task_of_samples(name: str, where: str, samples: Sequence[Any]) -> MeasuredTask:
    questions: list[Question] = []
    pool: list[Question] = []
    for sample in samples:
        split = (sample.metadata or {}).get("split")
        group = pool if split in IN_POOL else questions
        place = f"pool-{len(group) + 1}" if group is pool else str(len(group) + 1)
        number = len(questions) + len(pool) + 1
        group.append(_question_of_sample(sample, place, f"{where}, sample {number}"))
    if not questions:
        raise TransferError(f"{where}: no samples to score")
    check_apart(where, questions, pool)
    fields = {"subject": subject_of(name), "questions": tuple(questions), "pool": tuple(pool)}
    return made(MeasuredTask, where, name=name, **fields)


def _question_of_sample(sample: Any, place: str, where: str) -> Question:
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    options = tuple(sample.choices or ())
    fields: dict[str, Any] = {
        "id": place if sample.id is None else str(sample.id),
        "text": _text_of(sample.input, where),
        "options": options,
    }
    if not options:
        answer = targets[0] if targets else ""
        return made(Question, where, **fields, answer=answer, also=tuple(targets[1:]))
    if len(targets) != 1:
        raise TransferError(f"{where}: has {len(targets)} right options; only one is allowed")
    return made(Question, where, **fields, answer=right_option(targets[0], options, where))


def _text_of(prompt: Any, where: str) -> str:
    if isinstance(prompt, str):
        return prompt
    parts = []
    for message in prompt:
        if not isinstance(message.content, str) and any(
            part.type != "text" for part in message.content
        ):
            raise TransferError(f"{where}: its input is not only text", hint="leave the sample out")
        parts.append(message.text)
    return "\n\n".join(part for part in parts if part)
