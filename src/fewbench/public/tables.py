"""Sources that publish tables or lists of scores."""

import pickletools
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbench._json import loads
from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean
from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, Remote, laid_out
from fewbench.public.hosts import HOSTS
from fewbench.public.source import (
    Ask,
    Files,
    Find,
    Index,
    Read,
    day_of,
    from_rows,
    rows_of,
    with_attributes,
)
from fewbench.readers import Reading
from fewbench.readers.files import load_json
from fewbench.readers.tables import load_table
from fewbench.readers.values import content_id
from fewbench.scores import from_arrays

Row = tuple[str, str, float | None, str]  # model, item, score, task
LARGEST_JSON = 500 * 2**20
ROLES = ("source", "target")


def _frames(folder: Path, files: list[Remote], columns: list[str]) -> "pd.DataFrame":
    """Return the named columns of Parquet files, which must have all of them."""
    import pyarrow.parquet as pq

    frames = []
    for file in files:
        with laid_out(folder / file.path):
            frames.append(pq.read_table(folder / file.path, columns=columns).to_pandas())
            if lacking := set(columns) - set(frames[-1].columns):
                raise KeyError(*sorted(lacking))
    return cast(pd.DataFrame, pd.concat(frames, ignore_index=True))


def _only(rows: "pd.DataFrame", column: str, wanted: str | None, option: str) -> "pd.DataFrame":
    """Return the rows with a value of a column; PublicError lists the values that there are."""
    if wanted is None:
        return rows
    values = sorted({str(value) for value in rows[column]})
    if wanted not in values:
        hint = did_you_mean(wanted, values)
        raise PublicError(f"no {option} {wanted!r} in these results", hint=hint)
    return rows[rows[column].astype(str) == wanted]


# -- LiveBench -------------------------------------------------------------------------------


def read_livebench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read judgments; of a question that was judged twice, the later one."""
    import pyarrow.parquet as pq

    path = folder / found.files[0].path
    with laid_out(path):
        names = pq.read_schema(path).names
    group = "category" if "category" in names else "grouping"
    columns = ["question_id", "task", "model", "score", "turn", "tstamp", group]
    rows = _frames(folder, found.files, columns)
    with laid_out(path):
        wanted = None if ask.benchmark == "all" else ask.benchmark
        rows = _only(rows, group, wanted, "benchmark")
        rows = rows.sort_values("tstamp", kind="stable")
        turns = ["model", "question_id", "turn"]
        rows = rows.drop_duplicates(turns, keep="last")  # judged again
        days = rows.groupby("model")["tstamp"].min().map(day_of)
        table = rows.rename(columns={"question_id": "item", group: "category"})
    return from_rows(
        table,
        models=ask.models,
        item_columns=["category"],
        what=str(path),
        attributes={str(model): {"date": day} for model, day in days.items()},
        notes=["questions rotate, so models saw different sets; dates are of the first judgment"],
    )


# -- LiveCodeBench ---------------------------------------------------------------------------


def find_livecodebench(ask: Ask, fetcher: Fetcher) -> Index:
    """List the one file, which has no commit but a day."""
    name = "performances_generation.json"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    return Index([Remote(f"{HOSTS['livecodebench']}/{name}", name)], today)


def read_livecodebench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read pass@1 of each problem."""
    path = folder / found.files[0].path
    data = load_json(path)
    with laid_out(path):
        rows = pd.DataFrame(
            [
                {
                    "model": str(row["model"]),
                    "item": str(row["question_id"]),
                    "score": float(row["pass@1"]) / 100,
                    "task": str(row.get("platform") or "livecodebench"),
                    "difficulty": str(row.get("difficulty") or ""),
                    "contest_date": day_of(row.get("date")),
                }
                for row in data["performances"]
            ]
        )
        released = {
            str(model["model_repr"]): {"date": day_of(model.get("release_date"))}
            for model in data["models"]
        }
        if 0 < rows["score"].max() <= 0.01:
            raise ValueError("pass@1 is not from 0 to 100")
    extra = ["difficulty", "contest_date"]
    return from_rows(
        rows, models=ask.models, item_columns=extra, what=str(path), attributes=released
    )


# -- OpenEval --------------------------------------------------------------------------------


def read_openeval(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read responses to the items whose ids begin with the benchmark."""
    part = {
        kind: [file for file in found.files if file.path.startswith(f"{kind}/")]
        for kind in ("item", "response")
    }
    items = set(_frames(folder, part["item"], ["item_id"])["item_id"].astype(str))
    where = folder / "response"
    table = _frames(folder, part["response"], ["response_id", "scores"])
    wanted = str(ask.benchmark).lower()
    rows, metrics = [], Counter[str]()
    with laid_out(where):
        for response, scores in zip(table["response_id"], table["scores"], strict=True):
            item, model = _response_of(str(response), items)
            if not _is_of(item, wanted):
                continue
            for metric, value in zip(scores["metric"], scores["value"], strict=True):
                metrics[str(metric["name"])] += 1
                rows.append((model, item, str(metric["name"]), value))
    if not rows:
        benchmarks = sorted({re.split(r"[_\-.]", item)[0] for item in items})
        raise PublicError(
            f"OpenEval: no items of {ask.benchmark!r}",
            hint=did_you_mean(str(ask.benchmark), benchmarks),
        )
    if ask.metric is None and len(metrics) > 1:
        raise PublicError("OpenEval: no metric named", hint=f"pass --metric {'|'.join(metrics)}")
    frame = pd.DataFrame(rows, columns=["model", "item", "metric", "score"])
    frame = _only(frame, "metric", ask.metric, "metric").assign(task=ask.benchmark)
    return from_rows(frame, models=ask.models, what=str(where))


def _is_of(item: str, benchmark: str) -> bool:
    """Whether the id of an item begins with a benchmark's name."""
    rest = item[len(benchmark) :]
    return item.lower().startswith(benchmark) and not rest[:1].isalnum()


def _response_of(response: str, items: set[str]) -> tuple[str, str]:
    """Return item and model of ITEMID_MODEL_RUN; both may hold underscores, so items decide."""
    parts = response.split("_")[:-1]
    cuts = [("_".join(parts[:at]), "_".join(parts[at:])) for at in range(1, len(parts))]
    fitting = [(item, model) for item, model in cuts if item in items and model]
    if len(fitting) != 1:
        what = f"OpenEval: response {response!r} fits {len(fitting)} items"
        raise PublicError(what, hint="the source names responses in a new way")
    return fitting[0]


# -- measurement-db --------------------------------------------------------------------------


def read_measurement(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read responses that are right or wrong, with the names of the subjects."""
    named = {Path(file.path).stem.removesuffix("s"): file for file in found.files}
    where = folder / named["response"].path
    columns = ["subject_id", "item_id", "benchmark_id", "trial", "response"]
    rows = _frames(folder, [named["response"]], columns)
    names: dict[str, str] = {}
    attributes: dict[str, dict[str, Any]] = {}
    if "subject" in named:
        path = folder / named["subject"].path
        with laid_out(path):
            for row in load_table(path, []).to_dict("records"):
                keys = ("display_name", "name", "subject_name", "model", "hub_repo")
                uid = str(row["subject_id"])
                names[uid] = next((row[key] for key in keys if isinstance(row.get(key), str)), uid)
                attributes[names[uid]] = {
                    "date": day_of(str(row.get("release_date"))),
                    "family": row.get("family"),
                }
    if len(set(names.values())) < len(names):  # names that two subjects share tell nothing
        names, attributes = {}, {}
    if "benchmark" in named:
        benchmarks = set(rows["benchmark_id"])
        path = folder / named["benchmark"].path
        with laid_out(path):
            for row in load_table(path, []).to_dict("records"):
                kind = {key: row.get(key) for key in ("response_type", "granularity")}
                if row["benchmark_id"] in benchmarks and list(kind.values()) != ["binary", "item"]:
                    raise PublicError(
                        f"{path}: responses are not right or wrong by item ({kind})",
                        hint="pass another --benchmark",
                    )
    with laid_out(where):
        own_ids = rows["subject_id"].astype(str)
        rows = rows.assign(
            model=own_ids.map(lambda uid: names.get(uid, uid)),
            item=rows["item_id"].astype(str),
            score=rows["response"],
            task=rows["benchmark_id"].astype(str),
        )
    return from_rows(rows, models=ask.models, what=str(where), attributes=attributes)


# -- MMLU-Pro --------------------------------------------------------------------------------


def read_mmlu_pro(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read archives of answers; one that could not be extracted is wrong."""

    def answers(place: PurePosixPath, listed: list[dict[str, Any]]) -> Iterable[Row]:
        model = place.stem.removeprefix("model_outputs_")
        for row in listed:
            right = row["pred"] is not None and row["pred"] == row["answer"]
            yield model, str(row["question_id"]), float(right), str(row["category"])

    frame = _only(rows_of(found, folder, answers, _zipped), "task", ask.split, "split")
    return from_rows(frame, what="MMLU-Pro")


def _zipped(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the JSON lists in an archive of bounded size."""
    with laid_out(path), zipfile.ZipFile(path) as archive:
        inside = [
            info
            for info in archive.infolist()
            if info.filename.endswith(".json") and "__MACOSX" not in info.filename
        ]
        if not inside or sum(info.file_size for info in inside) > LARGEST_JSON:
            raise PublicError(f"{path}: no JSON in the archive, or too much", hint=MOVED)
        return [row for info in inside for row in loads(archive.read(info))]


# -- AlpacaEval ------------------------------------------------------------------------------


def read_alpaca(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read preferences over GPT-4 Turbo's answers."""

    def preferences(place: PurePosixPath, listed: list[dict[str, Any]]) -> Iterable[Row]:
        met = Counter[str]()
        for row in listed:
            task = str(row.get("dataset") or "alpaca_eval")
            item = content_id(task, row["instruction"])
            met[item] += 1
            item += f"#{met[item]}" if met[item] > 1 else ""
            liked = row["preference"]
            yield place.parts[1], item, None if liked is None else float(liked) - 1, task

    note = "the score is the share of the vote against GPT-4 Turbo's answer"
    return from_rows(rows_of(found, folder, preferences), what="AlpacaEval", notes=[note])


# -- metabench -------------------------------------------------------------------------------


def read_metabench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read a table of source, item and correct."""
    path = folder / found.files[0].path
    rows = load_table(path, ["source", "item"])
    with laid_out(path):
        rows = rows[["source", "item", "correct"]].set_axis(["model", "item", "score"], axis=1)
        rows["task"] = ask.benchmark
    note = "items are numbered by their row in the data set, from 1"
    return from_rows(rows, models=ask.models, what=str(path), notes=[note])


# -- TailoredBench ---------------------------------------------------------------------------


MOST_ITEMS = 6000
"""Items that the authors' program takes of a benchmark."""
FLOATS = re.compile("f[48]")
SMALLEST_ARRAY = 8
"""Bytes of the smallest inner array: of two float32."""


def find_tailoredbench(ask: Ask, fetcher: Fetcher) -> Index:
    """List the arrays of a benchmark, and the right options where models' probabilities are."""
    ending = "_acc_0" if ask.benchmark == "gsm8k" else ""
    names = [f"{role}_model_alldata{ending}.npy" for role in ROLES]
    names += [] if ending else ["gt_label*.npy"]
    under = f"BenchmarkDatasets/{ask.benchmark}"
    patterns = tuple(f"{under}/{name}" for name in names)
    return Files("github:marvelcell/TailoredBench", patterns, under)(ask, fetcher)


def read_tailoredbench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read the arrays of source models and targets, models × items, in the repository's order.

    Of ARC and HellaSwag, they are options' probabilities, and a score is whether the most probable
    option is the right one, as the authors' `get_dataset_specific_scores` has it.
    """
    paths = {role: _ending(found, folder, f"/{role}_") for role in ROLES}
    parts = [_array(path) for path in paths.values()]
    models = [
        f"{role}-{at + 1:03d}"
        for role, part in zip(ROLES, parts, strict=True)
        for at in range(len(part))
    ]
    with laid_out(folder):
        whole = np.concatenate(parts)
        n_items = min(whole.shape[1], MOST_ITEMS)
        items = [f"{ask.benchmark}-{at + 1:04d}" for at in range(n_items)]
        tasks = [str(ask.benchmark)] * n_items
        if whole.dtype == object or whole.ndim == 3:
            # Of two files of labels the authors' program reads the one with a longer name.
            right = _array(_ending(found, folder, "/gt_label")).astype(np.intp)[:n_items]
            options, n_options = _padded(whole[:, :n_items])
            values = (options.argmax(axis=2) == right).astype(np.float64)
            scores = from_arrays(
                values,
                models=models,
                items=items,
                tasks=tasks,
                probabilities=options,
                n_options=n_options,
            )
        else:
            values = whole[:, :n_items].astype(np.float64)
            scores = from_arrays(values, models=models, items=items, tasks=tasks)
    roles = {model: {"role": model.partition("-")[0]} for model in models}
    notes = ["names of models are in the paper's Tables 14 to 16, not with the arrays"]
    if n_items < whole.shape[1]:
        notes.append(f"the first {n_items:,} of {whole.shape[1]:,} items, as the program takes")
    return Reading(with_attributes(scores, roles), tuple(notes))


def _ending(listing: Index, folder: Path, part: str) -> Path:
    """Return the file whose path contains a part; of several, the one with the longest name."""
    return folder / max((file.path for file in listing.files if part in file.path), key=len)


def _array(path: Path) -> NDArray[Any]:
    """Return an array of numbers, or of arrays of numbers, whose bytes are read without unpickling.

    NumPy pickles each inner array with its type (float32 or float64) and its bytes.
    """
    with laid_out(path), path.open("rb") as file:
        version, _ = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0
        shape, _, dtype = (header if version == 1 else np.lib.format.read_array_header_2_0)(file)
        if not dtype.hasobject:
            file.seek(0)
            return cast(NDArray[Any], np.load(file, allow_pickle=False))
        arguments = [argument for _, argument, _ in pickletools.genops(file)]
        kinds = {part for part in arguments if isinstance(part, str) and FLOATS.fullmatch(part)}
        data = [raw for raw in arguments if isinstance(raw, bytes) and len(raw) >= SMALLEST_ARRAY]
        (kind,) = kinds
        cells = np.empty(len(data), dtype=object)
        cells[:] = [np.frombuffer(raw, kind) for raw in data]
        return cells.reshape(shape)


def _padded(cells: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return options' probabilities, 0 where an item has no such option, and options per item."""
    if cells.ndim == 3:
        return cells.astype(np.float32), np.full(cells.shape[1], cells.shape[2], dtype=np.intp)
    n_options = np.array([len(cell) for cell in cells[0]], dtype=np.intp)
    options = np.zeros((*cells.shape, n_options.max()), dtype=np.float32)
    for model, row in enumerate(cells):
        for item, cell in enumerate(row):
            options[model, item, : n_options[item]] = cell
    return options, n_options


WAYS: dict[str, tuple[Find, Read]] = {
    "livebench": (
        Files("hub:livebench/model_judgment", ("data/leaderboard-*.parquet",)),
        read_livebench,
    ),
    "livecodebench": (find_livecodebench, read_livecodebench),
    "openeval": (
        Files("hub:human-centered-eval/OpenEval", ("response/*.parquet", "item/*.parquet")),
        read_openeval,
    ),
    "measurement-db": (
        Files(
            "hub:aims-foundations/measurement-db",
            ("{benchmark}/response*",),
            under="{benchmark}",
            optional=("{benchmark}/subjects.*", "{benchmark}/benchmarks.*"),
        ),
        read_measurement,
    ),
    "mmlu-pro": (
        Files("github:TIGER-AI-Lab/MMLU-Pro", ("*.zip",), under="eval_results", sample=slice(None)),
        read_mmlu_pro,
    ),
    "alpaca-eval": (
        Files(
            "github:tatsu-lab/alpaca_eval",
            ("*/weighted_alpaca_eval_gpt4_turbo/annotations.json",),
            under="results",
            sample=slice(None),
        ),
        read_alpaca,
    ),
    "metabench": (
        Files("zenodo:12819251", ("*{benchmark}*.csv",), is_one=True),
        read_metabench,
    ),
    "tailoredbench": (find_tailoredbench, read_tailoredbench),
}
"""How the files of each source are found and read."""
