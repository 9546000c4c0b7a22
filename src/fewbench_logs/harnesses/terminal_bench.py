"""Terminal-Bench: results.json of version 1, and result.json of jobs and trials of Harbor (2)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from fewbench.errors import ReaderError
from fewbench.readers.files import at, head, load_json, load_object, object_at
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants, empty
from fewbench.readers.values import describe

TASK_1, TASK_2 = "terminal-bench-1", "terminal-bench-2"
HEAD = re.compile(rb'\s*\{(\s*"id"\s*:\s*"[^"]*"\s*,)?\s*"results"\s*:\s*\[\s*\{')
TRIAL = re.compile(rb'\s*\{\s*("id"\s*:\s*"[^"]*"\s*,\s*)?"task_name"\s*:.*"trial_name"', re.DOTALL)
JOB = re.compile(rb'"n_total_trials"\s*:|"evals"\s*:\s*\{')
METADATA = "run_metadata.json"
DATED = re.compile(r"(\d{4})(\d\d)(\d\d)_(.+)")
SUBMITTED = (
    re.compile(r"(?:^|/)results/[^/]+[@:]\d[^/]*/(\d{8}_[^/]+)/"),
    re.compile(r"(?:^|/)submissions/[^/]+/\d[^/]*/([^/]+__[^/]+)/[^/]+/"),
)
"""Files in the leaderboards' repositories: results/BENCHMARK@VERSION/DATE_AGENT_MODEL/… of version
1, and submissions/BENCHMARK/VERSION/AGENT__MODEL/JOB/… of version 2."""


class TerminalBench:
    """Read runs of Terminal-Bench: a model is an agent with a model, an item a task.

    Several trials of a task are answers to one item. A trial without a verdict or reward failed,
    also one that only the list of its job has.
    """

    name = "terminal-bench"
    files = "results.json of a run (version 1), or result.json of a job and its trials (version 2)"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the runs of version 1, and the jobs of version 2 with their trials beside."""
        units, jobs, trials = [], dict[Path, Path](), defaultdict[Path, list[Path]](list)
        metadata = {path.parent: path for path in files if path.name == METADATA}
        for path in files:
            start = head(path) if path.name.endswith(("results.json", "result.json")) else b""
            if path.name.endswith("results.json") and HEAD.match(start) and b'"task_id"' in start:
                beside = metadata.get(path.parent)
                units.append(LogUnit(path, () if beside is None else (beside,)))
            elif path.name == "result.json" and TRIAL.match(start):
                trials[path.parent.parent].append(path)
            elif path.name == "result.json" and JOB.search(start):
                jobs[path.parent] = path
        for folder, own in trials.items():
            job = jobs.pop(folder, own[0])
            units.append(LogUnit(job, tuple(path for path in own if path != job)))
        return [*units, *(LogUnit(job) for job in jobs.values())]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the run of a file of results, or the runs of a job: one for each system."""
        if wants.key not in (None, "task_id"):
            raise ReaderError(f"{unit.path}: trials have no {wants.key!r}", hint="omit --key")
        if unit.path.name.endswith("results.json"):
            return [_run_1(unit, wants)]
        return _runs_2(unit, wants)


def submission_of(place: PurePath) -> str | None:
    """Return the submission to a leaderboard that a file is of, None outside its repository.

    Examples
    --------
    >>> submission_of(PurePath("results/core@0.1.1/20250811_agent_model/run1/results.json"))
    '20250811_agent_model'
    >>> submission_of(PurePath("submissions/terminal-bench/2.0/agent__model/job/result.json"))
    'agent__model'
    >>> submission_of(PurePath("data@2/runs/r1/results.json"))
    """
    matches = (layout.search(place.as_posix()) for layout in SUBMITTED)
    return next((match[1] for match in matches if match), None)


def system_of(submission: str) -> str:
    """Return the system of a submission without its date, AGENT_MODEL."""
    match = DATED.fullmatch(submission)
    return match[4] if match else submission


def is_resolved(trial: dict[str, Any]) -> bool | None:
    """Return the verdict on a trial of version 1, None without one.

    TypeError for a value that is not a verdict.
    """
    verdict = trial["is_resolved"]
    if not isinstance(verdict, bool | None):
        raise TypeError(f"is_resolved is {describe(verdict)}")
    return verdict


def rewards_of(job: dict[str, Any]) -> dict[str, float]:
    """Return the reward of each trial for which a job of version 2 lists one."""
    rewards: dict[str, float] = {}
    for scores in job["stats"]["evals"].values():
        for reward, trials in scores["reward_stats"].get("reward", {}).items():
            for trial in trials:
                if trial in rewards or "__" not in trial:
                    raise ValueError(f"trial {trial!r} stands there twice or has no task")
                rewards[trial] = float(reward)
    return rewards


def lost_trials(job: dict[str, Any], n_known: int) -> Iterator[str]:
    """Yield a note on trials of a job of version 2 whose tasks are unknown, if there are any."""
    total = job.get("n_total_trials")
    if isinstance(total, int) and total > n_known:
        yield (
            f"trials that the job counts, but neither files nor its list name, are not read: their "
            f"tasks are unknown ({total - n_known:,})"
        )


def task_of(trial: str) -> str:
    """Return the task of a trial of version 2 by the trial's name, TASK__SUFFIX."""
    return trial.rpartition("__")[0]


def _run_1(unit: LogUnit, wants: Wants) -> LogRun:
    path = unit.path
    trials = load_object(path, "results of Terminal-Bench")["results"]
    rows, met, unjudged = Rows(path, "trial"), Counter[str](), 0
    for place, trial in enumerate(trials, start=1):
        verdict, task = is_resolved(trial), str(trial["task_id"])
        unjudged += verdict is None
        tokens = [trial.get(f"total_{side}_tokens") for side in ("input", "output")]
        rows.append(
            task,
            {"resolved": wants.broken("wrong") if verdict is None else float(verdict)},
            place,
            trial=met[task],
            own_id=task,
            costs={"tokens": None if None in tokens else sum(tokens)},
        )
        met[task] += 1
    told = load_json(unit.beside[0]) if unit.beside else {}
    submission = submission_of(path.absolute())
    named = [name for key in ("agent_name", "model_name") if (name := at(told, key))]
    model = system_of(submission) if submission else "_".join(map(str, named))
    unread = _failed(unjudged, "without a verdict (null)", wants)
    return rows.run(
        model or path.absolute().parent.name,
        TASK_1,
        higher_is_better={"resolved": True},
        notes=tuple(unread),
    )


def _failed(trials: int, why: str, wants: Wants) -> Iterator[str]:
    if trials:
        count_as = "not run" if wants.errors == "not-run" else "failed"
        yield f"trials {why} count as {count_as} ({trials:,})"


class _Trial(NamedTuple):
    """A trial of version 2; `reward` is None if it has none."""

    name: str
    system: str
    benchmark: str
    task: str
    reward: float | None
    costs: Mapping[str, Any] = {}
    started: str = ""
    has_file: bool = True


def _only_listed(job: dict[str, Any], filed: list[_Trial], usual: _Trial) -> Iterator[_Trial]:
    """Yield the trials that a job lists and that have no file, as what the others of a list are.

    `usual` is what they are if none has a file.
    """
    rewards = rewards_of(job)
    by_name = {trial.name: trial for trial in filed}
    for scores in job["stats"]["evals"].values():
        lists = [object_at(scores, "reward_stats", "reward"), object_at(scores, "exception_stats")]
        names = dict.fromkeys(name for trials in lists for name in chain(*trials.values()))
        like = next((by_name[name] for name in names if name in by_name), usual)
        for name in names:
            if name in by_name:
                continue
            yield _Trial(
                name, like.system, like.benchmark, task_of(name), rewards.get(name), has_file=False
            )


def _runs_2(unit: LogUnit, wants: Wants) -> list[LogRun]:
    paths = [path for path in (unit.path, *unit.beside) if TRIAL.match(head(path))]
    submission = submission_of(unit.path.absolute())
    folder = unit.path.absolute().parent.name
    trials = [_trial(path, submission, folder) for path in paths]
    of_job: list[str] = []
    if unit.path not in paths:
        job = load_object(unit.path, "a job")
        trials += _only_listed(job, trials, _Trial("", submission or folder, TASK_2, "", None))
        of_job += lost_trials(job, len(trials))
    if not trials:
        raise empty(unit.path)
    by_run = defaultdict[tuple[str, str], list[_Trial]](list)
    for trial in trials:
        by_run[trial.system, trial.benchmark].append(trial)
    runs = []
    for (system, benchmark), own in by_run.items():
        rows, met = Rows(unit.path, "trial"), Counter[str]()
        for place, trial in enumerate(own, start=1):
            score = {"reward": wants.broken("wrong") if trial.reward is None else trial.reward}
            rows.append(trial.task, score, place, trial=met[trial.task], own_id=trial.task,
                        costs=trial.costs)  # fmt: skip
            met[trial.task] += 1
        unjudged = sum(trial.reward is None for trial in own)
        notes = [*of_job, *_failed(unjudged, "without a reward", wants)]
        if paths and (unfiled := sum(not trial.has_file for trial in own)):
            notes.append(f"trials without a file count by the list of their job ({unfiled:,})")
        runs.append(
            rows.run(
                system,
                benchmark,
                stamp=min(filter(None, (trial.started for trial in own)), default=""),
                higher_is_better={"reward": True},
                notes=tuple(notes),
            )
        )
    return runs


def _trial(path: Path, submission: str | None, folder: str) -> _Trial:
    """Read a trial; its system is the submission, or else its agent and model, or the folder."""
    data = load_object(path, "a trial")
    names = [at(data, "agent_info", "name"), at(data, "agent_info", "model_info", "name")]
    system = submission or "__".join(str(name) for name in names if name)
    source = str(data.get("source") or "")
    is_other = bool(source) and not source.startswith("terminal-bench")
    tokens = [at(data, "agent_result", f"n_{side}_tokens") for side in ("input", "output")]
    return _Trial(
        str(data.get("trial_name")),
        system or folder,
        source if is_other else TASK_2,
        str(data["task_name"]),
        at(data, "verifier_result", "rewards", "reward"),
        {
            "cost": at(data, "agent_result", "cost_usd"),
            "tokens": None if None in tokens else sum(tokens),
        },
        str(data.get("started_at") or ""),
    )
