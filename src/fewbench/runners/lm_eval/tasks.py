"""Tasks of lm-eval, their documents, and the prompts of a whole run.

lm-eval's default few-shot sampler draws from one random stream, document by document, so a run of
chosen documents gets other examples than a whole run. `Task` replays the stream: each document
gets the examples that it got in the whole runs of the source models. It also keeps the documents
that were checked: lm-eval reads them again for each run, and a task may shuffle them.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench.errors import ReaderError, RunError, first_line
from fewbench.readers.harness import key_of, key_text
from fewbench.readers.harnesses.lm_eval.samples import choices_of
from fewbench.readers.values import ID_LENGTH, field_value
from fewbench.runners.lm_eval.setup import Setup
from fewbench.scores.table import POSITION


class LmTask:
    """A loaded task whose documents and few-shot examples stay those of a whole run.

    Parameters
    ----------
    name : str
    task : lm_eval.api.task.Task
        Changed in place: from now on it runs these documents.
    setup : Setup
    key : str, optional
        Field that identifies a document (default: lm-eval's hash of it). `doc_id` is its position
        unless documents have such a field.

    Attributes
    ----------
    documents : list
        In the order of lm-eval's positions.
    hashes : list of str
        lm-eval's hash of each document.
    ids : list of str
        Item id of each document: TASK/CONTENT, with #2, #3, … for equal documents.
    """

    def __init__(self, name: str, task: Any, setup: Setup, key: str | None = None) -> None:
        from lm_eval.utils import handle_non_serializable

        self.name, self.task = name, task
        _configure(task, setup)
        self.documents = _documents(name, task)
        self.hashes = [
            _sha256(
                json.dumps(document, indent=2, default=handle_non_serializable, ensure_ascii=False)
            )
            for document in self.documents
        ]
        self.ids = list(self._named(key))
        self._position = {id(document): at for at, document in enumerate(self.documents)}
        self._drawn_at: dict[int, int] = {}
        self._in_order = dict(enumerate(self.documents))
        self._at = 0
        self._draws: list[Any] = []
        self._sample = getattr(getattr(task, "sampler", None), "sample", None)
        self._context = task.fewshot_context
        task.doc_iterator = self._chosen
        task.fewshot_context = self._in_context
        if self._sample is not None:
            task.sampler.sample = self._replayed

    def _named(self, key: str | None) -> Iterator[str]:
        met: dict[str, int] = {}
        for at, (document, hashed) in enumerate(zip(self.documents, self.hashes, strict=True)):
            content = hashed[:ID_LENGTH]
            if key == POSITION and key not in document:
                content = str(at)
            elif key is not None:
                try:
                    content = field_value(document, key, f"document {at} of task {self.name!r}")
                except ReaderError as error:
                    raise RunError(error.message, hint=error.hint) from error
            met[content] = met.get(content, 0) + 1
            twin = f"#{met[content]}" if met[content] > 1 else ""
            yield f"{self.name}/{content}{twin}"

    # What lm-eval calls instead of the task's own methods.

    def _chosen(self, *, samples: Sequence[int] | None = None, **_: Any) -> Iterator[Any]:
        wanted = range(len(self.documents)) if samples is None else samples
        yield from enumerate(self.documents[at] for at in wanted)

    def _in_context(self, doc: Any, *args: Any, **kwargs: Any) -> Any:
        position = self._position[id(doc)]
        self._at = self._drawn_at.get(position, position)
        return self._context(doc, *args, **kwargs)

    def _replayed(self, *args: Any, **kwargs: Any) -> Any:
        """Return the examples that a whole run draws for the current document."""
        assert self._sample is not None
        while len(self._draws) <= self._at:
            if kwargs.get("eval_doc") is not None:  # drawn from the same split, without itself
                kwargs["eval_doc"] = self._in_order.get(len(self._draws), self.documents[0])
            self._draws.append(self._sample(*args, **kwargs))
        return self._draws[self._at]

    # What fewbench asks.

    def replay_as(self, before: Mapping[int, int]) -> None:
        """Draw examples as if documents were where they were: position now to position before."""
        self._drawn_at = dict(before)
        self._in_order |= {was: self.documents[now] for now, was in before.items()}

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics."""
        return list(self.task.aggregation())

    @property
    def filters(self) -> list[str]:
        """Names of the filters."""
        return [str(each.name) for each in getattr(self.task, "_filters", [])]

    def answer_keys(self, positions: Iterable[int]) -> list[str]:
        """Return the key of each position, as far as it is known without building prompts."""
        is_choice = self.task.OUTPUT_TYPE == "multiple_choice" and not self.has_options_in_context
        options = getattr(self.task, "doc_to_choice", None) if is_choice else None
        return [self._key(at, (options and self._told(options, at)) or []) for at in positions]

    def _key(self, at: int, choices: Iterable[Any]) -> str:
        answer = self._told(self.task.doc_to_target, at)
        hashed = None if answer is None else _sha256(str(answer))
        return key_text(key_of(hashed, [str(choice) for choice in choices]))

    def _told(self, compute: Callable[[Any], Any], at: int) -> Any:
        """Return what the task's own code computes for a document, or None if it fails."""
        try:
            return compute(self.documents[at])
        except Exception:  # the document also fails when it runs
            return None

    @property
    def has_options_in_context(self) -> bool:
        """Whether options stand in the contexts (as in winogrande)."""
        return bool(getattr(self.task, "multiple_input", 0))

    def hashes_of(
        self, positions: Sequence[int], model: Any, setup: Setup
    ) -> list[tuple[str, str]]:
        """Return lm-eval's hash of the prompt of each position, and the key of its document.

        No model runs.
        """
        template = setup.apply_chat_template
        with without_bars():
            self.task.build_all_requests(
                samples=list(positions),
                system_instruction=setup.system_instruction,
                apply_chat_template=bool(template),
                fewshot_as_multiturn=setup.fewshot_as_multiturn,
                chat_template=getattr(model, "apply_chat_template", None) if template else None,
                tokenizer_name=getattr(model, "tokenizer_name", "") if template else "",
            )
        requests: dict[int, list[list[Any]]] = defaultdict(list)
        for instance in sorted(self.task.instances, key=lambda instance: int(instance.idx)):
            requests[int(instance.doc_id)].append(list(instance.arguments))
        return [
            (_sha256(requests[at][0][0]), self._key(position, choices_of(requests[at])))
            for at, position in enumerate(positions)
        ]


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep lm-eval and its models from showing bars of their own for every batch."""
    from tqdm import tqdm

    begin = tqdm.__init__

    def begin_hidden(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **{**kwargs, "disable": True})

    tqdm.__init__ = begin_hidden
    try:
        yield
    finally:
        tqdm.__init__ = begin


def _configure(task: Any, setup: Setup) -> None:
    """Change the task's settings as lm-eval's `simple_evaluate` does."""
    if setup.gen_kwargs and task.get_config("output_type") == "generate_until":
        task.set_config(key="generation_kwargs", value=setup.gen_kwargs, update=True)
    shots = task.get_config("num_fewshot")
    if setup.num_fewshot is not None and shots != 0:
        task.set_config(key="num_fewshot", value=setup.num_fewshot)
    elif shots is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=setup.seeds[3])


def _documents(name: str, task: Any) -> list[Any]:
    """Return the documents to run; RunError if there are none."""
    try:
        documents = list(task.eval_docs)
    except ValueError as error:  # it has no split to run
        documents, why = [], f": {first_line(error)}"
    else:
        why = ""
    if not documents:
        raise RunError(
            f"task {name!r} has no documents{why}",
            hint="leave the task out, or give it a test_split with documents",
        )
    return documents


def load_tasks(names: Sequence[str], setup: Setup, key: str | None = None) -> dict[str, LmTask]:
    """Load tasks by name.

    Raises
    ------
    RunError
        If lm-eval has no task of a name, it is a group, or its data cannot be read.
    """
    manager = make_manager(names, setup)
    if unknown := [name for name in names if name not in manager.all_tasks]:
        raise RunError(
            f"lm-eval has no task {some(unknown)}",
            hint="pass --include_path DIR for your own tasks; or import the scores again with "
            "items that are named TASK/ID by lm-eval's name of the task",
        )
    groups = {*manager.all_groups, *manager.all_tags}
    if group := next((name for name in names if name in groups), None):
        parts = [name for name in manager.all_subtasks if name.startswith(f"{group}_")]
        raise RunError(
            f"{group!r} is a group of lm-eval, which runs in full whatever is chosen",
            hint=f"import scores of its tasks{f', such as {some(parts, most=8)}' if parts else ''}",
        )
    return {name: LmTask(name, _load(name, manager), setup, key) for name in names}


def make_manager(names: Sequence[str], setup: Setup) -> Any:
    """Return lm-eval's manager of tasks, with tasks and groups of these names if there are any."""
    from lm_eval.tasks import TaskManager

    metadata = setup.metadata
    if setup.include_path is not None:  # lm-eval's own 15,000 files take seconds to read
        manager = TaskManager(
            include_path=setup.include_path, include_defaults=False, metadata=metadata
        )
        if set(names) <= set(manager.all_tasks):
            return manager
    return TaskManager(include_path=setup.include_path, metadata=metadata)


def _load(name: str, manager: Any) -> Any:
    try:
        return manager.load([name])["tasks"][name]
    except Exception as error:  # of any data set
        raise RunError(
            f"lm-eval cannot load task {name!r}: {first_line(error)}",
            hint=f"try lm-eval run --model dummy --tasks {quoted(name)} --limit 1",
        ) from error


def run_documents(
    tasks: Mapping[str, LmTask],
    model: Any,
    places: Mapping[str, Mapping[int, str]],
    hashes: Mapping[str, tuple[str, str]],
    setup: Setup,
) -> dict[str, list[dict[str, Any]]]:
    """Run chosen documents and return lm-eval's rows by task.

    Parameters
    ----------
    tasks : mapping of str to Task
    model : lm_eval.api.model.LM
    places : mapping of task to mapping of int to str
        Position to item of the chosen documents.
    hashes : mapping of item to (str, str)
        See `Task.hashes_of`.
    setup : Setup

    Raises
    ------
    RunError
        If lm-eval did not run the chosen documents with these prompts, and only these.
    Exception
        Any error of the model.
    """
    from lm_eval.evaluator import evaluate

    chosen = {name: sorted(positions) for name, positions in places.items()}
    with without_bars():
        results = evaluate(
            model,
            {name: tasks[name].task for name in chosen},
            samples=chosen,
            bootstrap_iters=0,
            log_samples=True,
            system_instruction=setup.system_instruction,
            apply_chat_template=setup.apply_chat_template,
            fewshot_as_multiturn=setup.fewshot_as_multiturn,
            confirm_run_unsafe_code=setup.confirm_run_unsafe_code,
        )
    samples: dict[str, list[dict[str, Any]]] = results["samples"]
    for name, items in places.items():
        _check_ran(tasks[name], samples[name], items, hashes)
    return samples


def _check_ran(
    task: LmTask,
    rows: Sequence[Mapping[str, Any]],
    items: Mapping[int, str],
    hashes: Mapping[str, tuple[str, str]],
) -> None:
    ran: dict[str, list[int]] = {}
    for row in rows:
        at = int(row["doc_id"])
        ran.setdefault(str(row["filter"]), []).append(at)
        same = at in items and row["doc_hash"] == task.hashes[at]
        if not same or row["prompt_hash"] != hashes[items[at]][0]:
            raise RunError(
                f"lm-eval ran another {'prompt' if same else 'document'} than the one chosen "
                f"at position {at} of {task.name}",
                hint="report this as a bug in fewbench, with the version of lm-eval",
            )
    for filtered, where in ran.items():
        if sorted(where) != sorted(items):
            raise RunError(
                f"lm-eval ran {len(where)} of {len(items)} chosen documents of {task.name} "
                f"(filter {filtered!r})",
                hint="report this as a bug in fewbench, with the version of lm-eval",
            )


def check_runnable(tasks: Mapping[str, LmTask], model: Any, setup: Setup) -> None:
    """Raise RunError for tasks that lm-eval would not run with this model."""
    for name, task in tasks.items():
        if getattr(task.task, "UNSAFE_CODE", False) and not setup.confirm_run_unsafe_code:
            raise RunError(
                f"task {name!r} runs code that the model wrote",
                hint="pass --confirm_run_unsafe_code after -- if that is safe on your machine",
            )
        if getattr(task.task, "MULTIMODAL", False) and not getattr(model, "MULTIMODAL", False):
            raise RunError(
                f"task {name!r} has pictures or sounds, which this model does not take",
                hint="use a model such as hf-multimodal or vllm-vlm",
            )
    if getattr(model, "world_size", 1) > 1:
        raise RunError(
            f"the model runs in {counted(model.world_size, 'process', 'processes')}; each would "
            "draw its own few-shot examples",
            hint="start one process, and spread the model over devices with --model_args "
            "parallelize=True (hf) or tensor_parallel_size=N (vllm)",
        )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
