"""Scores from an .npz file: arrays named scores, models, items, tasks, …"""

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._content import refuse_pointer
from fewbench._memory import array_header, check_arrays_memory, check_fits
from fewbench._names import some
from fewbench.errors import FewbenchError, MissingFileError, ReaderError, first_line
from fewbench.readers.harness import Reading
from fewbench.scores import Scale, Scores, from_arrays

MOST_OPTIONS = 100_000


def read_npz(path: str | os.PathLike[str], *, scale: Scale | None = None) -> Reading:
    """Read scores from an .npz file without pickled objects.

    Parameters
    ----------
    path : path
        A file with arrays `scores` (models × items), `models`, and optionally `items`, `tasks`,
        `role`, `dates`, `families`, `probabilities` (models × items × options), `n_options`, or
        `answers` (chosen options; -1: unreadable, -2: not run). Answers become probabilities of 1,
        with an option of its own for unreadable ones.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.

    Raises
    ------
    ReaderError
        If the file is damaged, lacks an array or holds pickled objects.
    """
    source = Path(path)
    if not source.is_file():
        raise MissingFileError(f"{source}: no such file")
    refuse_pointer(source, ReaderError)
    try:
        check_arrays_memory(source)
        with np.load(source, allow_pickle=False) as file:
            mapped = _mapped(source, "probabilities")
            rest = [name for name in file.files if mapped is None or name != "probabilities"]
            arrays = {name: file[name] for name in rest}
            arrays |= {} if mapped is None else {"probabilities": mapped}
    except FewbenchError:
        raise
    except Exception as error:  # numpy's header parser and zipfile let through all kinds
        reason = first_line(error)
        raise ReaderError(
            f"{source}: not a whole .npz file of plain arrays ({reason})",
            hint="write it with numpy.savez, texts as fixed-width strings",
            kind="damaged",
        ) from error
    lacking = [name for name in ("scores", "models") if name not in arrays]
    if lacking:
        raise ReaderError(
            f"{source}: no array {some(lacking)}", hint=f"it has {some(arrays, most=8)}"
        )
    if not len(arrays["models"]):
        raise ReaderError(f"{source}: no scores: the array models is empty")
    try:
        return Reading(_build(arrays, scale), tuple(_notes(arrays)))
    except FewbenchError as error:
        raise error.within(str(source)) from error


def _mapped(source: Path, name: str) -> NDArray[Any] | None:
    """Return an array as stored in the file, or None if it is compressed or missing."""
    with zipfile.ZipFile(source) as file:
        if f"{name}.npy" not in file.namelist():
            return None
        entry = file.getinfo(f"{name}.npy")
        with file.open(entry) as array:
            kind = array_header(array)
            before = array.tell()
    if entry.compress_type != zipfile.ZIP_STORED or kind is None or kind[1].hasobject:
        return None
    shape, dtype, by_columns = kind
    with source.open("rb") as raw:  # the entry's own header is before its content
        raw.seek(entry.header_offset + 26)
        names, extra = np.frombuffer(raw.read(4), dtype="<u2")
    start = entry.header_offset + 30 + int(names) + int(extra) + before
    order: Literal["C", "F"] = "F" if by_columns else "C"
    return np.memmap(source, dtype, "r", start, shape, order)


def _notes(arrays: dict[str, NDArray[Any]]) -> Iterator[str]:
    if "answers" not in arrays or "probabilities" in arrays:
        return
    answers, listed = arrays["answers"], arrays.get("n_options")
    note = "'no answer' counts as an option of its own: every item has one more"
    if listed is not None:
        beyond = int((answers >= listed).sum())
        note += f" than the file's {listed.min()} to {listed.max()}"
        if beyond:
            note += f", or more where answers are above its last option ({beyond} do)"
    yield note


def _build(arrays: dict[str, NDArray[Any]], scale: Scale | None) -> Scores:
    options, n_options = arrays.get("probabilities"), arrays.get("n_options")
    if options is None and "answers" in arrays:
        options, n_options = _certain(arrays["answers"], n_options)
    if arrays["scores"].dtype.kind not in "biuf":
        raise ReaderError(f"array 'scores' has type {arrays['scores'].dtype}, not numbers")
    scores = from_arrays(
        arrays["scores"],
        models=_texts(arrays, "models") or [],
        items=_texts(arrays, "items"),
        tasks=_texts(arrays, "tasks"),
        dates=_texts(arrays, "dates"),
        families=_texts(arrays, "families"),
        probabilities=options,
        n_options=n_options,
        scale=scale,
    )
    role = _texts(arrays, "role")
    if role is None:
        return scores
    if len(role) != scores.n_models or not set(role) <= {"source", "target"}:
        raise ReaderError("array 'role' must say source or target for every model")
    return scores.changed(models=scores.models.assign(role=np.array(role, dtype=object)))


def _texts(arrays: dict[str, NDArray[Any]], name: str) -> list[str] | None:
    if name not in arrays:
        return None
    if arrays[name].ndim != 1:
        raise ReaderError(f"array {name!r} has {arrays[name].ndim} dimensions, not 1")
    if arrays[name].dtype.kind == "S":  # bytes, as older programs write texts
        try:
            return [value.decode() for value in arrays[name].tolist()]
        except UnicodeDecodeError as error:
            raise ReaderError(f"array {name!r} is not UTF-8 text ({error})") from error
    if arrays[name].dtype.kind not in "Uiu":
        raise ReaderError(
            f"array {name!r} holds {arrays[name].dtype}, not texts", hint="write texts as strings"
        )
    return [str(value) for value in arrays[name].tolist()]


def _certain(
    answers: NDArray[Any], n_options: NDArray[Any] | None
) -> tuple[NDArray[np.float16], NDArray[Any]]:
    """Turn chosen options into probabilities of 1; option 0 means "no answer"."""
    fits = answers.ndim == 2 and answers.dtype.kind in "iu" and answers.size > 0
    if not fits or answers.min() < -2 or answers.max() > MOST_OPTIONS:
        raise ReaderError(
            "array 'answers' must hold option indices (-1: none, -2: not run), one for each "
            f"model and item, none above {MOST_OPTIONS}"
        )
    counts = answers.max(axis=0) + 1
    if n_options is not None:
        if n_options.shape != counts.shape or n_options.dtype.kind not in "iu":
            raise ReaderError(
                f"array 'n_options' has shape {n_options.shape} and holds {n_options.dtype}, not "
                f"one whole number for each of {len(counts)} items"
            )
        counts = np.maximum(counts, n_options)  # models do answer "J" where there are four options
    width = int(counts.max()) + 1
    check_fits(
        3.0 * answers.size * width,  # comparisons and half floats
        f"probabilities of {answers.shape[0]:,} models on {answers.shape[1]:,} items of up to "
        f"{width} options",
    )
    options = (answers[:, :, None] + 1 == np.arange(width)).astype(np.float16)
    options[answers == -2] = np.nan
    return options, counts + 1
