"""Sources of agent benchmarks: what is scored is an agent with a model, not a model alone."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, Remote, laid_out, sampled
from fewbench.public.hosts import HOSTS, Hub, github_files
from fewbench.public.source import (
    Ask,
    Files,
    Find,
    Index,
    Read,
    day_of,
    each_model,
    from_rows,
    rows_of,
    with_attributes,
)
from fewbench.readers import Reading, import_results
from fewbench.readers.files import at, object_at
from fewbench.support import counted, some
from fewbench.support import pandas as pd
from fewbench_logs.harnesses.swe_bench import DETAILS, LISTS, date_of
from fewbench_logs.harnesses.tau2_bench import reward_of, simulations_of
from fewbench_logs.harnesses.tau2_bench import task_of as domain_task
from fewbench_logs.harnesses.terminal_bench import (
    DATED,
    TASK_1,
    TASK_2,
    is_resolved,
    lost_trials,
    rewards_of,
    system_of,
    task_of,
)

# The data set that says which instances a split has.
INSTANCES = {
    "verified": "SWE-bench/SWE-bench_Verified",
    "bash-only": "SWE-bench/SWE-bench_Verified",
    "lite": "SWE-bench/SWE-bench_Lite",
    "test": "SWE-bench/SWE-bench",
    "multimodal": "SWE-bench/SWE-bench_Multimodal",
    "multilingual": "SWE-bench/SWE-bench_Multilingual",
}

# -- SWE-bench -------------------------------------------------------------------------------


def find_swe_bench(ask: Ask, fetcher: Fetcher) -> Index:
    """List results and metadata of submissions, and the table of instances."""
    split = ask.split or "verified"
    under = f"evaluation/{split}"
    listing = github_files(fetcher, "SWE-bench/experiments", ask.revision, under)
    by_system: dict[str, list[Remote]] = defaultdict(list)
    wanted = re.compile(rf"{under}/([^/]+)/(?:results/{LISTS}|{DETAILS}|metadata.ya?ml)")
    for file in listing.files:
        if match := wanted.fullmatch(file.path):
            by_system[match[1]].append(file)
    results = {
        name: files
        for name, files in by_system.items()
        if any(file.path.endswith((LISTS, DETAILS)) for file in files)
    }
    chosen = sampled(results, ask.models)
    if not chosen:
        raise PublicError(f"SWE-bench: no results in {under}", hint=MOVED)
    data = Hub(fetcher).files(INSTANCES[split])
    tables = [file for file in data.files if file.path.startswith("data/test")]
    if len(tables) != 1:
        what = f"{INSTANCES[split]}: {len(tables)} files data/test*, not one"
        raise PublicError(what, hint=MOVED)
    path = f"evaluation/{split}/instances-{data.commit[:12]}.parquet"
    table = replace(tables[0], path=path, is_needed=True)
    files = [file for name in chosen for file in results[name]]
    lacking = len(by_system) - len(results)
    notes = (f"{counted(lacking, 'submission')} without results left out",) if lacking else ()
    return Index([*files, table], listing.commit, notes=notes)


def read_swe_bench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read which instances each submission resolved."""
    paths = [folder / file.path for file in found.files if "metadata.y" not in file.path]
    reading = import_results(_best_form(paths), form="swe-bench", damaged="skip")
    attributes: dict[str, dict[str, Any]] = {}
    for file in found.files:
        if "metadata.y" in file.path:
            name = PurePosixPath(file.path).parts[2]
            attributes[name] = _system(folder / file.path)
    for name in reading.scores.model_ids:
        attributes.setdefault(name, {})["date"] = date_of(name)
    scores = with_attributes(reading.scores, attributes)
    repositories = [str(item).rpartition("-")[0].replace("__", "/") for item in scores.item_ids]
    repositories = [name.partition("/")[2] for name in repositories]
    scores = scores.changed(items=scores.items.assign(repository=repositories))
    note = "a model is a submission: an agent with one or several models"
    return replace(reading, scores=scores, notes=(*reading.notes, note))


def _best_form(paths: list[Path]) -> list[Path]:
    """Leave out lists of resolved instances where a submission has details."""
    detailed = {path.parent for path in paths if path.name == DETAILS}
    detailed |= {path.parent / "results" for path in paths if path.name == DETAILS}
    return [path for path in paths if path.name != LISTS or path.parent not in detailed]


def _system(path: Path) -> dict[str, Any]:
    """Return a submission's metadata from metadata.yaml."""
    import yaml

    with laid_out(path):
        metadata = yaml.safe_load(path.read_text(encoding="utf-8"))
        agent = "+".join(_texts(at(metadata, "tags", "agent")))
        models = _texts(at(metadata, "tags", "model"))
        llm = "+".join(model.rstrip("/").split("/")[-1] for model in models)
        return {
            "system": "".join(_texts(at(metadata, "info", "name"))),
            "agent": agent,
            "llm": llm,
            "attempts": "".join(_texts(at(metadata, "tags", "system", "attempts"))),
            # Systems with the same model resemble each other more than systems of one agent.
            "family": llm or agent,
        }


def _texts(value: Any) -> list[str]:
    """Return a text or number, or those of a list, as texts; nothing else."""
    listed = value if isinstance(value, list) else [value]
    return [str(entry) for entry in listed if isinstance(entry, str | int | float)]


# -- Terminal-Bench --------------------------------------------------------------------------

TERMINAL_2 = "harborframework/terminal-bench-2-leaderboard"
TERMINAL_2_FOLDER = "submissions/terminal-bench/2.0"


def _submission_1(place: PurePosixPath) -> str | None:
    """Return the submission to version 1 that a file of results is of, DATE_AGENT_MODEL.

    The results of a run are in the submission's folder, or in one of its folders. Deeper files
    are of single trials.
    """
    return place.parts[2] if place.name.endswith(TERMINAL_1_RESULTS) else None


TERMINAL_1_RESULTS = "results.json"
TERMINAL_1 = Files(
    "github:laude-institute/terminal-bench-leaderboard",
    (),
    under="results",
    optional=(f"results/*/*/*{TERMINAL_1_RESULTS}", f"results/*/*/*/{TERMINAL_1_RESULTS}"),
    model=_submission_1,
)


def find_terminal(ask: Ask, fetcher: Fetcher) -> Index:
    """List results of jobs; of version 2, also the trials of each job."""
    if ask.benchmark == "1":
        return TERMINAL_1(ask, fetcher)
    hub = Hub(fetcher)
    commit = hub.commit(TERMINAL_2, ask.revision)
    folders = hub.folder(TERMINAL_2, commit, TERMINAL_2_FOLDER).folders

    def jobs_of(folder: str) -> list[tuple[Remote, list[str]]]:
        jobs = []
        for job in hub.folder(TERMINAL_2, commit, folder).folders:
            listing = hub.folder(TERMINAL_2, commit, job)
            result = [log for log in listing.files if PurePosixPath(log.path).name == "result.json"]
            names = [PurePosixPath(trial).name for trial in listing.folders]
            jobs += [(file, [name for name in names if "__" in name]) for file in result]
        if not jobs:
            raise PublicError(f"{folder}: no result.json of a job")
        return jobs

    jobs_of_model, notes = each_model(fetcher, jobs_of, sampled(folders, ask.models), "submission")
    jobs = [job for several in jobs_of_model.values() for job in several]
    trials = {log.path: names for log, names in jobs}
    return Index([log for log, _ in jobs], commit, notes=notes, known=trials)


def read_terminal(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read the mean reward of the trials of each task."""
    return (_read_terminal_1 if ask.benchmark == "1" else _read_terminal_2)(found, folder)


def _read_terminal_1(found: Index, folder: Path) -> Reading:
    """Read whether each trial resolved its task; one without a verdict did not."""
    names = {_submission_1(PurePosixPath(file.path)) or "" for file in found.files}
    times = Counter(system_of(name) for name in names)
    systems = {name: name if times[system_of(name)] > 1 else system_of(name) for name in names}
    attributes = {}
    for name, system in systems.items():
        match = DATED.fullmatch(name)
        agent, _, model = (match[4] if match else "").partition("_")
        day = "-".join(match.groups()[:3]) if match else ""
        attributes[system] = {"agent": agent, "llm": model, "family": model, "date": day}
    unjudged = 0

    def trial(place: PurePosixPath, row: dict[str, Any]) -> tuple[Any, ...]:
        nonlocal unjudged
        verdict, task = is_resolved(row), str(row["task_id"])
        unjudged += verdict is None
        system = systems[_submission_1(place) or ""]
        return system, f"{TASK_1}/{task}", float(verdict is True), TASK_1

    rows, notes = rows_of(found, folder, lambda _, data: data["results"], trial)
    if unjudged:
        trials = counted(unjudged, "trial")
        notes = (*notes, f"{trials} without a verdict (null), which count as failed")
    notes = (*notes, "a model is an agent with a model: AGENT_MODEL")
    return from_rows(_with_ids(rows), item_columns=[OWN_ID], what="Terminal-Bench",
                     attributes=attributes, notes=notes)  # fmt: skip


OWN_ID = "sample_id"


def _with_ids(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Return rows with the source's own ids of items, which follow the task."""
    return rows.assign(**{OWN_ID: rows["item"].str.partition("/")[2]})


def _read_terminal_2(found: Index, folder: Path) -> Reading:
    """Read the rewards of the trials of each job; a trial without one has 0."""
    attributes: dict[str, dict[str, Any]] = {}
    untold, lost = 0, list[str]()

    def trials(place: PurePosixPath, data: dict[str, Any]) -> list[tuple[str, float]]:
        nonlocal untold
        agent, _, model = place.parts[3].rpartition("__")
        scored = rewards_of(data)
        absent = [trial for trial in found.known[str(place)] if trial not in scored]
        untold += len(absent)
        lost.extend(f"{place}: {note}" for note in lost_trials(data, len(scored) + len(absent)))
        day = day_of(str(data.get("started_at") or data.get("start_time") or ""))
        facts = attributes.setdefault(
            f"{agent}__{model}", {"agent": agent, "llm": model, "family": model}
        )
        facts["date"] = min(filter(None, [facts.get("date"), day]), default="")
        return [*scored.items(), *((trial, 0.0) for trial in absent)]

    def row(place: PurePosixPath, trial: tuple[str, float]) -> tuple[Any, ...]:
        name, score = trial
        return place.parts[3], f"{TASK_2}/{task_of(name)}", score, TASK_2

    rows, notes = rows_of(found, folder, trials, row)
    notes = (*notes, *lost, "a model is an agent with a model: AGENT__MODEL")
    if untold:
        notes = (*notes, f"{counted(untold, 'trial')} without a reward, which count as 0")
    return from_rows(_with_ids(rows), item_columns=[OWN_ID], what="Terminal-Bench",
                     attributes=attributes, notes=notes)  # fmt: skip


# -- tau2-bench ------------------------------------------------------------------------------

DOMAINS = ("airline", "retail", "telecom")  # without --split
OTHER_DOMAIN = "banking_knowledge"  # of other submissions than those
SUBMISSIONS = "web/leaderboard/public/submissions"


def find_tau2(ask: Ask, fetcher: Fetcher) -> Index:
    """List trajectories of the submissions in the manifest."""
    repo = "sierra-research/tau2-bench"
    listing = github_files(fetcher, repo, ask.revision, SUBMISSIONS)
    url = {file.path: file.url for file in listing.files}
    with laid_out(f"{repo}/{SUBMISSIONS}/manifest.json"):
        named = fetcher.json(url[f"{SUBMISSIONS}/manifest.json"])["submissions"]
        chosen = sampled([str(name) for name in named], ask.models)
    elsewhere: list[str] = []
    wanted = DOMAINS if ask.split is None else (ask.split,)

    def submission(name: str) -> tuple[list[Remote], dict[str, Any]]:
        path = f"{SUBMISSIONS}/{name}/submission.json"
        if path not in url:
            raise PublicError(f"{name}: no submission.json")
        with laid_out(path):
            record = fetcher.json(url[path])
            named = record.get("trajectory_files") or {}
            files = [
                Remote(
                    f"{HOSTS['tau2']}/submissions/{quote(name)}/trajectories/{quote(named[area])}",
                    f"submissions/{name}/{area}/{named[area]}",
                )
                for area in wanted
                if area in named
            ]
            released = object_at(record, "model_release").get("release_date")
            attributes = {
                "date": day_of(released or record.get("submission_date")),
                "family": record.get("model_organization") or "",
                "llm": record.get("model_name") or "",
                "agent": record.get("submission_type") or "standard",
                "user_simulator": object_at(record, "methodology").get("user_simulator") or "",
            }
        if not files:
            elsewhere.extend([name] if OTHER_DOMAIN in named and ask.split is None else [])
            hint = f"pass --split {some(list(named))}" if named else None
            raise PublicError(f"{name}: no trajectories of {some(wanted)}", hint=hint)
        return files, attributes

    pairs, notes = each_model(fetcher, submission, chosen, "submission")
    if elsewhere:
        notes = (*notes, f"{len(elsewhere)} of these ran {OTHER_DOMAIN}: --split {OTHER_DOMAIN}")
    return Index(
        [file for files, _ in pairs.values() for file in files],
        listing.commit,
        {name: attributes for name, (_, attributes) in pairs.items()},
        notes,
    )


def read_tau2(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read the mean reward of the trials of each task; a trial without one has 0."""

    def trial(place: PurePosixPath, row: dict[str, Any]) -> tuple[Any, ...]:
        model, domain = place.parts[1:3]
        task = domain_task(domain)
        return model, f"{task}/{row['task_id']}", reward_of(row), task

    users = {str(facts["user_simulator"]) for facts in found.attributes.values()} - {""}
    rows, notes = rows_of(found, folder, lambda _, data: simulations_of(data), trial)
    if len(users) > 1:
        users_named = some(sorted(users))
        notes = (*notes, f"the simulated user differs between models: {users_named}")
    return from_rows(rows, what="tau2-bench", attributes=found.attributes, notes=notes)


WAYS: dict[str, tuple[Find, Read]] = {
    "swe-bench": (find_swe_bench, read_swe_bench),
    "terminal-bench": (find_terminal, read_terminal),
    "tau2-bench": (find_tau2, read_tau2),
}
"""How the files of each source are found and read."""
