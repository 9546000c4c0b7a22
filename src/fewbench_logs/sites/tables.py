"""Sources that publish tables or lists of scores."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, cast

from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, Misread, Remote, Unreachable, laid_out
from fewbench.public.hosts import HOSTS, list_files
from fewbench.public.source import (
    Ask,
    Files,
    Find,
    Index,
    Read,
    day_of,
    few,
    from_rows,
    parsed,
    rows_of,
)
from fewbench.readers import Reading
from fewbench.readers.files import load_json
from fewbench.readers.frames import load_table
from fewbench.readers.values import content_id, text_hash
from fewbench.scores.table import TEXTS
from fewbench.support import check_parquet, check_unpacked, counted, did_you_mean, loads, some
from fewbench.support import pandas as pd
from fewbench_logs.harnesses.livecodebench import task_of
from fewbench_logs.harnesses.mmlu_pro import is_right, model_of

Row = tuple[str, str, float | None, str]  # model, item, score, task


def _frames(
    folder: Path, files: list[Remote], columns: list[str], optional: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return the named columns of Parquet files, which must have all but optional ones."""
    import pyarrow.parquet as pq

    frames = []
    for file in files:
        path = folder / file.path
        with laid_out(path):
            check_parquet(path, [*columns, *optional])
            there = set(pq.read_schema(path).names) if optional else set()
            names = [*columns, *there.intersection(optional)]
            frame = pq.read_table(path, columns=names).to_pandas()
            if lacking := set(columns) - set(frame.columns):
                raise KeyError(*sorted(lacking))
            frames.append(frame.reindex(columns=[*columns, *optional]))
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

    def answer(row: dict[str, Any]) -> dict[str, Any]:
        return {
            "model": str(row["model"]),
            "item": f"{task_of(row.get('platform'))}/{row['question_id']}",
            "sample_id": str(row["question_id"]),
            "score": float(row["pass@1"]) / 100,
            "task": task_of(row.get("platform")),
            "difficulty": str(row.get("difficulty") or ""),
            "contest_date": day_of(row.get("date")),
        }

    with laid_out(path):
        answers, notes = parsed(data["performances"], answer, path.name)
        rows = pd.DataFrame(answers)
        released = {
            str(model["model_repr"]): {"date": day_of(model.get("release_date"))}
            for model in data["models"]
        }
        if 0 < rows["score"].max() <= 0.01:
            raise ValueError("pass@1 is not from 0 to 100")
    extra = ["sample_id", "difficulty", "contest_date"]
    return from_rows(
        rows,
        models=ask.models,
        item_columns=extra,
        what=str(path),
        attributes=released,
        notes=notes,
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
    ambiguous = []
    with laid_out(where):
        for response, scores in zip(table["response_id"], table["scores"], strict=True):
            fitting = _response_of(str(response), items)
            if len(fitting) != 1:
                ambiguous.append(f"response {response!r} fits {len(fitting)} items")
                continue
            ((item, model),) = fitting
            if not _is_of(item, wanted):
                continue
            for metric, value in zip(scores["metric"], scores["value"], strict=True):
                metrics[str(metric["name"])] += 1
                rows.append((model, item, str(metric["name"]), value))
    if len(ambiguous) > few(len(table)):
        problem = f"{len(ambiguous):,} of {counted(len(table), 'response')}: {ambiguous[0]}"
        raise Misread(f"OpenEval: {problem}", hint="the source names responses in a new way")
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
    notes = [f"{len(ambiguous)} left out: {ambiguous[0]}"] if ambiguous else []
    return from_rows(frame, models=ask.models, what=str(where), notes=notes)


def _is_of(item: str, benchmark: str) -> bool:
    """Whether the id of an item begins with a benchmark's name."""
    rest = item[len(benchmark) :]
    return item.lower().startswith(benchmark) and not rest[:1].isalnum()


def _response_of(response: str, items: set[str]) -> list[tuple[str, str]]:
    """Return item and model of ITEMID_MODEL_RUN; both may hold underscores, so items decide."""
    parts = response.split("_")[:-1]
    cuts = [("_".join(parts[:at]), "_".join(parts[at:])) for at in range(1, len(parts))]
    return [(item, model) for item, model in cuts if item in items and model]


# -- measurement-db --------------------------------------------------------------------------


MEASURED = "hub:aims-foundations/measurement-db"
REGISTRY = "_registry"
NAMES_OF_SUBJECT = ("display_name", "name", "subject_name", "model", "hub_repo")


def find_measurement(ask: Ask, fetcher: Fetcher) -> Index:
    """List responses of a benchmark, and what is known about it: in its folder or the registry."""
    listing = list_files(fetcher, MEASURED, ask.revision, str(ask.benchmark))
    by_kind = {_kind(file): file for file in listing.files}
    if "response" not in by_kind:
        what = f"{MEASURED}: no file {ask.benchmark}/response*"
        raise PublicError(what, hint=f"pass another --benchmark, or {MOVED}")
    try:
        registry = list_files(fetcher, MEASURED, listing.commit, REGISTRY).files
    except Unreachable:
        raise
    except PublicError:  # there is none
        registry = []
    for file in registry:
        by_kind.setdefault(_kind(file), file)
    needed = replace(by_kind["response"], is_needed=True)
    others = [by_kind[kind] for kind in ("subject", "benchmark", "item") if kind in by_kind]
    return Index([needed, *others], listing.commit)


def _kind(file: Remote) -> str:
    return PurePosixPath(file.path).stem.removesuffix("s")


def read_measurement(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read responses that are right or wrong, with the names of the subjects."""
    files = {_kind(file): file for file in found.files}
    tables = {}
    for kind in ("subject", "benchmark", "item"):
        if kind in files:
            path = folder / files[kind].path
            with laid_out(path):
                tables[kind] = load_table(path, []).drop_duplicates(f"{kind}_id")
                tables[kind] = tables[kind].set_index(f"{kind}_id")
    where = folder / files["response"].path
    columns = ["subject_id", "item_id", "benchmark_id", "response"]
    rows = _frames(folder, [files["response"]], columns, ["test_condition"])
    with laid_out(where):
        kinds = tables.get("benchmark", pd.DataFrame())
        for name in rows["benchmark_id"].unique():
            known = kinds.loc[name].to_dict() if name in kinds.index else {}
            if (response := known.get("response_type", "binary")) != "binary":
                raise PublicError(
                    f"{where}: responses of {name} are {response}, not right or wrong",
                    hint="pass another --benchmark",
                )
        subjects = tables.get("subject", pd.DataFrame())
        names, attributes = _subjects(subjects, rows["subject_id"].astype(str).unique())
        named = rows["test_condition"].astype(object)
        conditions = named.where(named.notna(), "").astype(str)
        models = rows["subject_id"].astype(str).map(names)
        # A model under a different condition, such as a different prompt, is a different model.
        models = models.where(conditions == "", models + " (" + conditions + ")")
        rows = rows.assign(
            model=models,
            item=rows["item_id"].astype(str),
            score=rows["response"],
            task=rows["benchmark_id"].astype(str),
        )
        for model, subject in zip(models, rows["subject_id"].astype(str), strict=True):
            attributes.setdefault(model, attributes.get(names[subject], {}))
        items = tables.get("item", pd.DataFrame())
        kept = [name for name in ("raw_item_id", "content") if name in items]
        for name in kept:
            rows[name] = rows["item"].map(items[name].astype(str))
    notes = []
    if different := sorted(set(conditions) - {""}):
        notes.append(
            f"models ran under {counted(len(different), 'named condition')}, each a model of its "
            f"own: {some(different)}"
        )
    return from_rows(
        rows,
        models=ask.models,
        item_columns=kept,
        what=str(where),
        attributes=attributes,
        notes=notes,
    )


def _subjects(
    table: "pd.DataFrame", subjects: Iterable[str]
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the name of each subject, and the attributes of each name.

    A name that two subjects share tells nothing: their ids are their names.
    """
    names: dict[str, str] = {}
    attributes: dict[str, dict[str, Any]] = {}
    table = table.set_axis(table.index.astype(str))
    shown = {}
    for subject in subjects:
        facts = table.loc[subject].to_dict() if subject in table.index else {}
        texts = (facts.get(key) for key in NAMES_OF_SUBJECT)
        shown[subject] = next((text for text in texts if isinstance(text, str) and text), subject)
        attributes[subject] = {
            "date": day_of(str(facts.get("release_date"))),
            "family": facts.get("family") or facts.get("provider"),
        }
    shared = Counter(shown.values())
    names = {subject: name if shared[name] == 1 else subject for subject, name in shown.items()}
    return names, {names[subject]: facts for subject, facts in attributes.items()}


# -- MMLU-Pro --------------------------------------------------------------------------------


def _zip_model(place: PurePosixPath) -> str | None:
    """Return the model that an archive of answers is of."""
    return model_of(place) or place.stem if place.suffix == ".zip" else None


def read_mmlu_pro(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read archives of answers; one that could not be extracted is wrong."""
    unread = Counter[str]()
    texts: dict[str, str] = {}

    def answer(place: PurePosixPath, row: dict[str, Any]) -> Row:
        model, right = _zip_model(place) or "", is_right(row)
        unread[model] += row["pred"] is None
        if "question" in row:
            texts.setdefault(str(row["question_id"]), text_hash("question", row["question"]))
        return model, str(row["question_id"]), float(right), str(row["category"])

    frame, notes = rows_of(found, folder, lambda _, rows: rows, answer, _zipped)
    frame = _only(frame, "task", ask.split, "split")
    if total := sum(unread.values()):
        (most, count), *_ = unread.most_common(1)
        notes = (
            *notes,
            f"{counted(total, 'answer')} without a choice (null) are wrong here, most of {most} "
            f"({count:,}); the published accuracies count them as random guesses and are higher",
        )
    if texts:
        frame[TEXTS] = frame["item"].map(texts).fillna("")
    columns = [TEXTS] if texts else []
    return from_rows(frame, item_columns=columns, what="MMLU-Pro", notes=notes)


def _zipped(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the JSON lists in an archive of bounded size."""
    with laid_out(path), zipfile.ZipFile(path) as archive:
        inside = [
            info
            for info in archive.infolist()
            if info.filename.endswith(".json") and "__MACOSX" not in info.filename
        ]
        if not inside:
            raise PublicError(f"{path}: no JSON in the archive", hint=MOVED)
        check_unpacked(sum(info.file_size for info in inside), path, path.stat().st_size)
        # As much as is declared, but no more.
        texts = (archive.open(info).read(info.file_size + 1) for info in inside)
        return [row for text in texts for row in loads(text)]


# -- AlpacaEval ------------------------------------------------------------------------------


def read_alpaca(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read preferences over GPT-4 Turbo's answers."""
    texts: dict[str, str] = {}
    met = Counter[tuple[str, str]]()

    def preference(place: PurePosixPath, row: dict[str, Any]) -> Row:
        task = str(row.get("dataset") or "alpaca_eval")
        item = content_id(task, row["instruction"])
        met[place.parts[1], item] += 1
        times = met[place.parts[1], item]
        item += f"#{times}" if times > 1 else ""
        texts[item] = str(row["instruction"])
        liked = row["preference"]
        return place.parts[1], item, None if liked is None else float(liked) - 1, task

    rows, notes = rows_of(found, folder, lambda _, listed: listed, preference)
    rows = rows.assign(instruction=rows["item"].map(texts))
    notes = (*notes, "the score is the share of the vote against GPT-4 Turbo's answer")
    return from_rows(rows, item_columns=["instruction"], what="AlpacaEval", notes=notes)


WAYS: dict[str, tuple[Find, Read]] = {
    "livebench": (
        Files("hub:livebench/model_judgment", ("data/leaderboard-*.parquet",)),
        read_livebench,
    ),
    "livecodebench": (find_livecodebench, read_livecodebench),
    "openeval": (
        Files("hub:Open-Eval-Commons/OpenEval", ("response/*.parquet", "item/*.parquet")),
        read_openeval,
    ),
    "measurement-db": (find_measurement, read_measurement),
    "mmlu-pro": (
        Files(
            "github:TIGER-AI-Lab/MMLU-Pro",
            ("eval_results/*.zip",),
            under="eval_results",
            model=_zip_model,
        ),
        read_mmlu_pro,
    ),
    "alpaca-eval": (
        Files(
            "github:tatsu-lab/alpaca_eval",
            ("results/*/weighted_alpaca_eval_gpt4_turbo/annotations.json",),
            under="results",
            model=lambda place: place.parts[1],
        ),
        read_alpaca,
    ),
}
"""How the files of each source are found and read."""
