"""Sources that publish logs of harnesses, which the ordinary readers read."""

import io
import re
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, Remote, laid_out, sampled
from fewbench.public.hosts import HOSTS, Hub, bucket_files
from fewbench.public.repository import read_logs
from fewbench.public.source import (
    Ask,
    Find,
    Index,
    Read,
    day_of,
    each_model,
    left_out,
    with_attributes,
)
from fewbench.readers import Reading
from fewbench.support import check_parquet, counted, did_you_mean, loads
from fewbench.support import pandas as pd

# -- HELM ------------------------------------------------------------------------------------

HELM_BUCKET = "crfm-helm-public"
HELM_FILES = ("run_spec.json", "per_instance_stats.json", "instances.json")
HELM_METRICS = ",".join(
    (
        *("final_number_exact_match", "math_equiv_chain_of_thought", "bleu_4", "f1_score"),
        *("quasi_exact_match", "exact_match", "chain_of_thought_correctness"),
        *("ifeval_strict_accuracy", "wildbench_score_rescaled", "omni_math_accuracy"),
    )
)
MODEL_OF_RUN = re.compile(r"[:,]model=([^,]+)")


def find_helm(ask: Ask, fetcher: Fetcher) -> Index:
    """List the runs of a release, by default the newest."""
    base = f"{ask.benchmark}/benchmark_output"
    version = ask.revision
    if version is None:
        releases = bucket_files(fetcher, HELM_BUCKET, f"{base}/releases/", deep=False).folders
        names = [PurePosixPath(folder).name for folder in releases]
        version = max(names, key=_version_key, default=None)
    if version is None:
        raise PublicError(f"HELM: no releases of {ask.benchmark}", hint=MOVED)
    url = f"{HOSTS['gcs']}/{HELM_BUCKET}/{base}/releases/{quote(version)}/runs_to_run_suites.json"
    with laid_out(url):
        suites = {str(run): str(suite) for run, suite in fetcher.json(url).items()}
    scenarios = sorted({run.partition(":")[0] for run in suites})
    if ask.split is not None and ask.split not in scenarios:
        hint = did_you_mean(ask.split, scenarios)
        raise PublicError(f"HELM {ask.benchmark} has no split {ask.split!r}", hint=hint)
    model_of = {
        run: named[1]
        for run in suites
        if (named := MODEL_OF_RUN.search(run)) and ask.split in (None, run.partition(":")[0])
    }
    # Runs write ORG_MODEL.
    written = {model.replace("_", "/", 1): model for model in model_of.values()}
    chosen = set(sampled(model_of.values(), ask.sample))
    if not isinstance(ask.models, int | None):
        chosen = {written[name] for name in sampled(written, ask.models)}
    runs = {f"{base}/runs/{suites[run]}/{run}": model_of[run] for run in model_of}
    runs = {place: model for place, model in runs.items() if model in chosen}
    # A suite is listed in pages of 1,000 files, which is fewer requests than one for each run.
    wanted = sorted({suites[run] for run, model in model_of.items() if model in chosen})
    listed = fetcher.each(
        lambda suite: bucket_files(fetcher, HELM_BUCKET, f"{base}/runs/{suite}/"), wanted
    )
    files: dict[str, list[Remote]] = defaultdict(list)
    dates: dict[str, dict[str, str]] = {}
    for bucket in listed:
        for file in bucket.files:
            place, _, name = file.path.rpartition("/")
            if place in runs and name in HELM_FILES:
                files[place].append(file)
                day, dates_of = day_of(bucket.created[file.path]), dates.setdefault(runs[place], {})
                dates_of["date"] = min(filter(None, [dates_of.get("date"), day]), default="")
    stats = HELM_FILES[1]
    whole = [place for place in runs if any(file.path.endswith(stats) for file in files[place])]
    missing = [PublicError(f"{run} has no {stats}") for run in runs if run not in set(whole)]
    notes = left_out(missing, len(runs), "run")
    return Index([file for place in whole for file in files[place]], version, dates, notes)


def _version_key(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))


def read_helm(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read runs by the metric of each scenario."""
    paths = [folder / file.path for file in found.files]
    reading = read_logs(ask, paths, "helm", HELM_METRICS)
    attributes = {}
    for model in reading.scores.model_ids:  # files write ORG_MODEL, runs ORG/MODEL
        uploaded = found.attributes.get(model.replace("/", "_"), {}).get("date", "")
        family = model.partition("/")[0] if "/" in model else ""
        attributes[model] = {"date": uploaded, "family": family}
    scores = with_attributes(reading.scores, attributes)
    note = "dates are of the files, and families are the developers of the models"
    return replace(reading, scores=scores, notes=(*reading.notes, note))


# -- Open LLM Leaderboard v1 -----------------------------------------------------------------

# Task and number of examples in the names of files, files of a whole run, metric, items.
V1 = {
    "arc": ("arc:challenge|25", 1, "acc_norm", 1172),
    "hellaswag": ("hellaswag|10", 1, "acc_norm", 10042),
    "mmlu": ("hendrycksTest-*|5", 57, "acc", 14042),
    "truthfulqa": ("truthfulqa:mc|0", 1, "mc2", 817),
    "winogrande": ("winogrande|5", 1, "acc", 1267),
    "gsm8k": ("gsm8k|5", 1, "acc", 1319),
}
V1_AUTHOR = "open-llm-leaderboard-old"


def find_v1(ask: Ask, fetcher: Fetcher) -> Index:
    """List the details of each model's most complete run."""
    hub = Hub(fetcher)
    start = f"{V1_AUTHOR}/details_"
    repos = [repo for repo in hub.datasets(V1_AUTHOR, "details_") if repo.startswith(start)]
    if not repos:
        raise PublicError(f"{V1_AUTHOR}: no repositories details_ORG__MODEL", hint=MOVED)

    def run_of(repo: str) -> list[Remote]:
        files = hub.files(repo).files
        pattern = f"details_harness|{V1[str(ask.benchmark)][0]}_*.parquet"
        runs: dict[str, list[Remote]] = defaultdict(list)
        for file in files:
            if fnmatchcase(PurePosixPath(file.path).name, pattern):
                runs[PurePosixPath(file.path).parent.name].append(file)
        if not runs:
            raise PublicError(f"{repo}: no run of {ask.benchmark}")
        # Runs may be partial: the one with most tasks counts, and of these the newest.
        time = max(runs, key=lambda time: (len(runs[time]), time.replace(":", "-")))
        stamp = time.replace(":", "-")
        results = [
            log
            for log in files
            if log.path.replace(":", "-").endswith(f"results_{stamp}.json") and "/" not in log.path
        ]
        home = repo.partition("/")[2]
        return [replace(file, path=f"{home}/{file.path}") for file in (*runs[time], *results)]

    runs, notes = each_model(fetcher, run_of, sampled(repos, ask.models), "model")
    return Index([file for run in runs.values() for file in run], "latest", notes=notes)


def read_v1(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read details as lighteval writes them."""
    _, n_files, metric, n_items = V1[str(ask.benchmark)]
    paths = [folder / file.path for file in found.files if file.path.endswith(".parquet")]
    reading = read_logs(ask, paths, "lighteval", metric)
    notes = list(reading.notes)
    if reading.scores.n_items > n_items:
        notes.append(
            f"{reading.scores.n_items:,} items where the benchmark has {n_items:,}: logs of "
            "different times identify the same items differently, so models have missing cells"
        )
    by_model = reading.files[reading.files["taken"] > 0].groupby("model").size()
    if short := int((by_model < n_files).sum()):
        notes.append(f"{counted(short, 'model')} with fewer than {n_files} tasks")
    return replace(reading, notes=tuple(notes))


# -- Open LLM Leaderboard v2 -----------------------------------------------------------------

V2 = {
    "ifeval": "prompt_level_strict_acc",
    "bbh": "acc_norm",
    "math": "exact_match",
    "gpqa": "acc_norm",
    "musr": "acc_norm",
    "mmlu_pro": "acc",
}
V2_DAYS = ("Upload To Hub Date", "Submission Date")
V2_AUTHOR = "open-llm-leaderboard"
V2_TIME = re.compile(r"samples_leaderboard_(.+)_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl?")


def find_v2(ask: Ask, fetcher: Fetcher) -> Index:
    """List each model's newest samples."""
    hub = Hub(fetcher)
    contents = hub.files(f"{V2_AUTHOR}/contents", ask.revision)
    table = [file for file in contents.files if file.path.endswith(".parquet")]
    if not table:
        raise PublicError(f"{V2_AUTHOR}/contents: no table of models", hint=MOVED)
    with laid_out(table[0].url):
        content = io.BytesIO(fetcher.read_hub(table[0]))
        check_parquet(content)
        rows = pd.read_parquet(content)
        attributes = {
            str(row["fullname"]): {
                "date": next(filter(None, (day_of(str(row.get(key))) for key in V2_DAYS)), ""),
                "family": row.get("Base Model"),
                "size": row.get("#Params (B)"),
                "merged": row.get("Merged"),
            }
            for row in rows.to_dict("records")
        }

    def run_of(model: str) -> list[Remote]:
        folder = model.replace("/", "__")
        repo = f"{V2_AUTHOR}/{folder}-details"
        listing = hub.files(repo)
        newest: dict[str, tuple[str, Remote]] = {}
        for file in listing.files:
            match = V2_TIME.fullmatch(PurePosixPath(file.path).name)
            if match and (match[1] == ask.benchmark or match[1].startswith(f"{ask.benchmark}_")):
                newest[match[1]] = max(
                    newest.get(match[1], ("", file)), (match[2], file), key=lambda pair: pair[0]
                )
        if not newest:
            raise PublicError(f"{repo}: no run of {ask.benchmark}")
        times = {time for time, _ in newest.values()}
        results = [
            file
            for file in listing.files
            if PurePosixPath(file.path).name in {f"results_{time}.json" for time in times}
        ]
        kept = [*(file for _, file in newest.values()), *results]
        return [replace(file, path=f"{folder}/{PurePosixPath(file.path).name}") for file in kept]

    runs, notes = each_model(fetcher, run_of, sampled(attributes, ask.models), "model")
    return Index([file for run in runs.values() for file in run], "latest", attributes, notes)


def read_v2(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read samples as lm-eval writes them."""
    paths = [folder / file.path for file in found.files if "/samples_" in file.path]
    return read_logs(ask, paths, "lm-eval", V2[str(ask.benchmark)], found.attributes)


# -- Every Eval Ever -------------------------------------------------------------------------

EEE = "evaleval/EEE_datastore"


def find_eee(ask: Ask, fetcher: Fetcher) -> Index:
    """List the records of a benchmark that have results of items."""
    hub = Hub(fetcher)
    commit = hub.commit(EEE, ask.revision)
    listed = hub.paths(EEE, commit, ["flat/latest_manifest.json"])
    if not listed:
        raise PublicError(f"{EEE}: no flat/latest_manifest.json", hint=MOVED)
    with laid_out(listed[0].url):
        manifest = loads(fetcher.read_hub(listed[0]))
        where = str(manifest["entries_path"])
        entries = hub.paths(EEE, commit, [where])[0]
        rows = [loads(line) for line in fetcher.read_hub(entries).splitlines() if line.strip()]
        usable = [
            row
            for row in rows
            if row.get("instance_level_available") and not row.get("superseded_by")
        ]
        names = sorted({str(row["benchmark"]) for row in usable})
        if ask.benchmark not in names:
            hint = did_you_mean(str(ask.benchmark), names)
            raise PublicError(
                f"{EEE}: no benchmark {ask.benchmark!r} with items", hint=hint, kind="unknown"
            )
        mine = {
            str(row["object_path"]): str(row["instance_level_path"])
            for row in usable
            if row["benchmark"] == ask.benchmark
        }
    kept = sampled(mine, ask.sample)
    paths = [path for name in kept for path in (name, mine[name])]
    files = hub.paths(EEE, commit, paths)
    there = {file.path for file in files}
    missing = [PublicError(f"no {name}") for name in kept if not {name, mine[name]} <= there]
    return Index(files, commit, notes=left_out(missing, len(kept), "record"))


def read_eee(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read records and their results of items."""
    paths = [folder / file.path for file in found.files if file.path.endswith("_samples.jsonl")]
    return read_logs(ask, paths, "every-eval-ever")


WAYS: dict[str, tuple[Find, Read]] = {
    "helm": (find_helm, read_helm),
    "open-llm-leaderboard-v1": (find_v1, read_v1),
    "open-llm-leaderboard-v2": (find_v2, read_v2),
    "every-eval-ever": (find_eee, read_eee),
}
"""How the files of each source are found and read."""
