"""How VLMEvalKit names its files: MODEL_DATASET.xlsx, and what an evaluation made of it."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fewbench.errors import ReaderError
from fewbench.readers.files import head
from fewbench.readers.json_files import load_json

SHEETS = (".xlsx", ".tsv", ".json")  # PRED_FORMAT
STATUS = "status.json"
RUN = re.compile(r"T\d{8}[-_]\w+")  # the folder of one run, below that of the model
# What an evaluation adds to the name of the predictions: the judge, if it had one, and a word.
MADE = re.compile(
    r"(?P<predictions>.+?)(?:_(?P<judge>exact_matching|extract_matching|openai|gpt4|"
    r"(?:chatgpt|gpt|qwen|deepseek)-.+?))?(?P<word>_results?|_auxmatch|_detailed_results)?"
)
# Half-way sheets of an evaluation, which hold other rows or scores.
HALF_WAY = re.compile(r".*_(vanilla(_\w+)?_result|tmp|checkpoint|PREV|processed|response|rating)")
COLUMNS = (b"question", b"prediction", b"hit", b"score", b"eval_match")


class Status(NamedTuple):
    """What the status.json of a run says; older versions have none."""

    model: str = ""
    eval_id: str = ""
    limit: str = ""


def model_folder(path: Path) -> Path:
    """Return the folder that is named as the model."""
    folder = path.absolute().parent
    return folder.parent if RUN.fullmatch(folder.name) else folder


def is_sheet(path: Path) -> bool:
    """Whether a file may be one of VLMEvalKit's: by the name, then by the first bytes."""
    suffix = path.suffix.lower()
    if suffix not in SHEETS or path.name == STATUS or HALF_WAY.fullmatch(path.stem):
        return False
    if not path.name.startswith(f"{model_folder(path).name}_"):
        found = MADE.fullmatch(path.stem)
        is_judged = found and (found["judge"] or found["word"] == "_auxmatch")
        if not is_judged and b'"eval_id"' not in head(path.parent / STATUS):
            return False
    start = head(path)
    if suffix == ".xlsx":
        return True
    if suffix == ".json":
        start = start.lstrip()
        return start[:1] == b"[" and b'"index"' in start and b'"question"' in start
    first = start.partition(b"\n")[0]
    return b"index" in first and sum(column in first for column in COLUMNS) > 1


def is_predictions(stem: str) -> bool:
    """Whether a name is of predictions, not of what an evaluation made of them.

    Examples
    --------
    >>> is_predictions("m_MMBench"), is_predictions("m_MMBench_exact_matching_result")
    (True, False)
    """
    found = MADE.fullmatch(stem)
    return found is None or (found["judge"] is None and found["word"] is None)


def made_of(stem: str, stems: Iterable[str]) -> tuple[str, str]:
    """Return the predictions of which a sheet was made, and the judge ("" if none).

    Parameters
    ----------
    stem : str
        The sheet's name.
    stems : iterable of str
        Names of the predictions in its folder. They tell where a dataset's name ends, whatever
        the judge is called.

    Examples
    --------
    >>> made_of("m_a_b_mistral_result", ["m_a", "m_a_b"]), made_of("m_a_gpt-4o_result", [])
    (('m_a_b', 'mistral'), ('m_a', 'gpt-4o'))
    """
    known = [name for name in stems if stem.startswith(f"{name}_")]
    found = MADE.fullmatch(stem)
    if not known:
        return (found["predictions"], found["judge"] or "") if found else (stem, "")
    predictions = max(known, key=len)
    end = len(stem) - len(found["word"] or "") if found else len(stem)
    return predictions, stem[len(predictions) : end].strip("_")


def predictions_beside(path: Path) -> list[Path]:
    """Return all predictions in a file's folder."""
    there = (other for other in path.parent.glob("*") if other.suffix.lower() in SHEETS)
    return sorted(o for o in there if is_predictions(o.stem) and o.name != STATUS and o != path)


def split_name(predictions: str, path: Path, status: Status) -> tuple[str, str]:
    """Return model and dataset; both may hold underscores, so the folder must tell.

    Raises
    ------
    ReaderError
        If it does not.
    """
    for model in (status.model, model_folder(path).name):
        if model and predictions.startswith(f"{model}_"):
            return model, predictions.removeprefix(f"{model}_")
    raise ReaderError(
        f"{path}: its name does not tell the model from the dataset",
        hint="keep it in the folder that VLMEvalKit made, which is named as the model",
    )


def read_status(path: Path) -> Status:
    """Read the status.json beside a file.

    Raises
    ------
    ReaderError
        If it is torn.
    """
    beside = path.parent / STATUS
    data = load_json(beside) if beside.is_file() else {}
    if not isinstance(data, dict):
        return Status()
    model, argv = data.get("model_name"), data.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list) else []
    limit = words[words.index("--limit") + 1 :] if "--limit" in words else []
    return Status(
        model if isinstance(model, str) else "",
        str(data.get("eval_id") or ""),
        limit[0] if limit else "",
    )
