"""Every method at every budget on every division, and a cache of what is finished.

Not `compare` itself: there one method that cannot run a table ends the study, and cells of the
same sources come far apart. A cell is the same one, with the same seeds, so that
`fewbench compare FILE -m METHOD` gives the same figures. All cells of one division of the models
are run by one process, one after another, for what methods remember of the sources to be used.
"""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

from _baselines.tables import BUDGETS, LIKE, SEED, SPLITS, Table, load
from fewbench._threads import one_thread
from fewbench.errors import FewbenchError
from fewbench.study import make_split
from fewbench.study.cell import Cell, run_cell
from papers import methods
from papers.methods import find


@dataclass(frozen=True)
class Record:
    """What came of a cell; `failed` says why nothing did, `broken` that it was not foreseen.

    `estimates` are of the split's targets, in its order. What is compared is made of them when the
    page is made, so that a better way to compare needs no cell again.
    """

    key: str
    table: str
    split: str
    repeat: int
    method: str
    parts: str
    budget: int
    mae: float = float("nan")
    estimates: tuple[float, ...] = ()
    items_run: float = float("nan")
    seconds: float = float("nan")
    notes: tuple[str, ...] = ()
    failed: str = ""
    broken: bool = False


CODE = sha256(
    b"".join(path.read_bytes() for path in sorted(Path(methods.__path__[0]).glob("*.py")))
).hexdigest()[:8]
"""A cell's key includes the package's code; this is the code of the papers' own methods."""
_FIELDS = tuple(one.name for one in fields(Record))


@dataclass(frozen=True)
class Plan:
    """What is run, and where finished cells are kept.

    `changed`, if given, names the methods whose cells are run again; those of all others are
    taken from the cache though code has changed since.
    """

    folder: Path
    cache: Path
    methods: tuple[str, ...]
    deadline: float
    changed: frozenset[str] | None = None


@dataclass(frozen=True)
class Job:
    """One repeat of one split of one table, for one process."""

    table: Table
    split: str
    repeat: int

    @property
    def name(self) -> str:
        return f"{self.table.name}, {self.split} split, repeat {self.repeat}"


@dataclass(frozen=True)
class Done:
    """The cells of a job, how many were run just now, and how many time was too short for."""

    job: Job
    records: list[Record] = field(default_factory=list)
    fresh: int = 0
    unrun: int = 0
    seconds: float = 0.0


def jobs(tables: Sequence[Table]) -> list[Job]:
    """Return the jobs, those of repeat 0 first: if time ends, every table has something."""
    found = [
        Job(table, split, repeat)
        for table in tables
        for split in SPLITS
        for repeat in range(table.repeats_of(split))
    ]
    return sorted(found, key=lambda job: (job.repeat, job.split == LIKE))


def run_all(plan: Plan, tables: Sequence[Table], workers: int) -> Iterator[Done]:
    """Run all jobs, each as it finishes."""
    plan.cache.mkdir(parents=True, exist_ok=True)
    todo = jobs(tables)
    if workers == 1:
        for job in todo:
            yield run_job(plan, job)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for finished in as_completed([pool.submit(run_job, plan, job) for job in todo]):
            yield finished.result()


def run_job(plan: Plan, job: Job) -> Done:
    """Run the cells of a job that are not in the cache."""
    started = time.monotonic()
    loaded = load(plan.folder, job.table.name)
    scores = loaded.scores
    records: list[Record] = []
    fresh = unrun = 0
    split = make_split(scores, job.table.settings(job.split), SEED, job.repeat)
    path = plan.cache / f"{job.table.name}.{job.split}.{job.repeat}.jsonl"
    known = read_records(path)
    for name in plan.methods:
        if name in loaded.cannot:
            continue
        method = find(name)
        for budget in BUDGETS:
            if budget > scores.n_items:
                continue
            cell = Cell(name, method, budget, job.split, split, job.repeat, SEED, None, True)
            blank = Record(
                cell.key(scores.fingerprint) + CODE,
                *(job.table.name, job.split, job.repeat, name, method.describe(), budget),
            )
            before = known.get((name, blank.parts, budget))
            if before is not None and _holds(before, blank, plan):
                records.append(before)
            elif time.time() > plan.deadline:
                unrun += 1
            else:
                records.append(_run(blank, scores, cell))
                _append(path, records[-1])
                fresh += 1
    return Done(job, records, fresh, unrun, time.monotonic() - started)


def _run(blank: Record, scores, cell: Cell) -> Record:  # type: ignore[no-untyped-def]
    started = time.process_time()  # a busy machine must not make a method look slow
    try:
        with one_thread():
            result = run_cell(scores, cell, "")
    except FewbenchError as error:
        return replace(blank, failed=error.message)
    except Exception as error:  # one method's mistake must not cost the others' half hour
        return replace(blank, failed=f"{type(error).__name__}: {error}", broken=True)
    return replace(
        blank,
        mae=result.metrics["mae"],
        estimates=tuple(round(one, 9) for one in result.estimate),
        items_run=result.metrics["items_run"],
        seconds=time.process_time() - started,
        notes=result.notes,
    )


def _holds(before: Record, now: Record, plan: Plan) -> bool:
    """Whether a finished cell is still what would come out."""
    trusted = plan.changed is not None and now.method not in plan.changed
    return before.key == now.key or trusted


def read_records(path: Path) -> dict[tuple[str, str, int], Record]:
    """Return the finished cells of a file, the latest of each; a torn line is skipped.

    So is what an earlier version kept without estimates.
    """
    found: dict[tuple[str, str, int], Record] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(line)
            said = {name: said[name] for name in _FIELDS}
            lists = {name: tuple(said[name]) for name in ("notes", "estimates")}
            record = Record(**(said | lists))
        except (ValueError, TypeError, KeyError):
            continue
        found[record.method, record.parts, record.budget] = record
    return found


def _append(path: Path, record: Record) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(asdict(record)))  # before it, so that a torn line stays alone
