"""Tables built from authors' pickles: only numbers and text are read, nothing is executed."""

import csv
import json
import pickle
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib.numpy_pickle import NumpyArrayWrapper, NumpyUnpickler

from fewbench._names import some
from fewbench.errors import PublicError
from fewbench.public import load_scores
from fewbench.scores import save_scores
from papers.authors import Built, Repository

NUMBERS = re.compile(
    r"numpy (ndarray|dtype)|numpy\.(_core|core)\.(multiarray|numeric) "
    r"(_reconstruct|scalar|_frombuffer)|joblib\.numpy_pickle NumpyArrayWrapper"
)


class _Array(NumpyArrayWrapper):  # type: ignore[misc]
    """An array in a pickle of joblib; one of objects would bring a pickle of its own."""

    def read(self, *args: Any) -> Any:
        if self.dtype.hasobject:
            raise PublicError("a pickle holds an array of objects; it is not read")
        return super().read(*args)


class _Numbers(NumpyUnpickler):  # type: ignore[misc]
    """Reads numbers and text, and refuses whatever else a pickle asks for."""

    def find_class(self, module: str, name: str) -> Any:
        if not NUMBERS.fullmatch(f"{module} {name}"):
            raise PublicError(f"a pickle asks for {module}.{name}; it is not read")
        return _Array if name == NumpyArrayWrapper.__name__ else super().find_class(module, name)


def numbers(path: Path) -> Any:
    """Return the numbers and text of a pickle, of pickle or joblib.

    Raises
    ------
    PublicError
        If it is damaged or asks for anything else.
    """
    with path.open("rb") as file:
        try:
            return _Numbers(str(path), file, ensure_native_byte_order=False).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError) as error:
            raise PublicError(f"{path.name} is not a pickle of numbers: {error}") from error


# Open LLM Leaderboard 2: MATH-hard and MuSR

PREDICTION = Repository(
    "socialfoundations/benchmark-prediction",
    re.compile(r"data/scores/(openllm_math|musr)(_models)?\.jbl"),
    "data/scores",
)
TASKS = {
    "openllm_math": {
        "math_geometry_hard": 132,
        "math_intermediate_algebra_hard": 280,
        "math_num_theory_hard": 154,
        "math_prealgebra_hard": 193,
        "math_precalculus_hard": 135,
    },
    "musr": {
        "musr_murder_mysteries": 250,
        "musr_object_placements": 256,
        "musr_team_allocation": 250,
    },
}
"""Tasks of a file, in the order of its columns, and their numbers of items."""


def _leaderboard(folders: Sequence[Path], path: Path) -> None:
    """Right and wrong answers of the models that ran both benchmarks."""
    (folder,) = folders
    parts, runs = [], []
    for name, tasks in TASKS.items():
        models = _told_apart(numbers(folder / f"{name}_models.jbl"))
        part = np.asarray(numbers(folder / f"{name}.jbl"))
        if part.shape != (len(models), sum(tasks.values())):
            raise PublicError(
                f"{name}.jbl has the shape {part.shape}, not {len(models)} models × "
                f"{sum(tasks.values())} items"
            )
        parts.append(part.astype(np.uint8))
        runs.append({model: row for row, model in enumerate(models)})
    models = [model for model in runs[0] if all(model in run for run in runs)]
    rows = [[run[model] for model in models] for run in runs]
    sizes = {task: size for tasks in TASKS.values() for task, size in tasks.items()}
    np.savez_compressed(
        path,
        scores=np.hstack([part[at] for part, at in zip(parts, rows, strict=True)]),
        models=np.array(models),
        items=np.array([f"{task}-{at}" for task, size in sizes.items() for at in range(size)]),
        tasks=np.repeat(list(sizes), list(sizes.values())),
    )


def _told_apart(names: Sequence[Any]) -> list[str]:
    """Number the further rows of a name: some models are there twice."""
    seen: dict[str, int] = defaultdict(int)
    models = []
    for name in map(str, names):
        seen[name] += 1
        models.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return models


# ARC Challenge: the models that TailoredBench names

ARC = Repository(
    PREDICTION.name, re.compile(r"data/scores/arc_challenge(_models)?\.jbl"), "data/scores"
)
ARC_NAMES = Path(__file__).parent / "models/arc.txt"


def _arc(folders: Sequence[Path], path: Path) -> None:
    """Right and wrong answers of the named models; the list has no organizations."""
    (folder,) = folders
    values = np.asarray(numbers(folder / "arc_challenge.jbl"))
    row_of: dict[str, int] = {}
    for row, model in enumerate(numbers(folder / "arc_challenge_models.jbl")):
        row_of.setdefault(model.rpartition("/")[2], row)  # the second rows of models are equal
    models = ARC_NAMES.read_text(encoding="utf-8").splitlines()
    if lacking := [model for model in models if model not in row_of]:
        raise PublicError(f"arc_challenge.jbl lacks {some(lacking)}")
    np.savez_compressed(
        path,
        scores=values[[row_of[model] for model in models]].astype(np.uint8),
        models=np.array(models),
        items=np.array([f"arc-{at}" for at in range(values.shape[1])]),
        tasks=np.repeat("arc_challenge", values.shape[1]),
    )


# DISCO: the authors' estimates of 40 dated targets

DISCO = Repository(
    "arubique/disco-public",
    re.compile(
        r"results/(accs|results)_((arc|hellaswag|winogrande)_split-noniid_iterations-5"
        r"_disagreement_best|mmlu_fields_split-noniid_iterations-5_disagreement_compare_with_irt)"
        r"_?\d+\.pickle"
    ),
    "results",
)
DISCO_ITEMS = 100


def _disco(folders: Sequence[Path], path: Path) -> None:
    """Estimates of each benchmark, by 100 items: methods × targets × runs, and full scores.

    The files have estimates and their absolute errors; a target's full score is the number that
    has these errors from all estimates.
    """
    (folder,) = folders
    arrays: dict[str, np.ndarray] = {}
    for benchmark in ("mmlu_fields", "hellaswag", "winogrande", "arc"):
        said, off = (
            numbers(next(folder.glob(f"{kind}_{benchmark}_split-noniid*.pickle")))
            for kind in ("accs", "results")
        )
        methods = [
            name for name, one in next(iter(said.values()))[DISCO_ITEMS].items() if _runs(one)
        ]
        estimates, errors = (
            np.array([[_runs(of[at][DISCO_ITEMS][name]) for at in of] for name in methods])
            for of in (said, off)
        )
        full = []
        for own, own_errors in zip(
            np.moveaxis(estimates, 1, 0), np.moveaxis(errors, 1, 0), strict=True
        ):
            apart = own.flat[0] + own_errors.flat[0] * np.array([-1, 1])
            full.append(
                min(apart, key=lambda score: np.abs(np.abs(own - score) - own_errors).max())
            )
        if np.abs(np.abs(estimates - np.array(full)[:, None]) - errors).max() > 1e-9:
            raise PublicError(f"{benchmark}: the errors are not those of the estimates")
        arrays |= {f"{benchmark}_methods": np.array(methods), f"{benchmark}_estimates": estimates}
        arrays[f"{benchmark}_full"] = np.array(full)
    np.savez_compressed(path, **arrays)


def _runs(one: dict[str, Any]) -> list[float]:
    """Return a method's values of five runs, or nothing if it has more or fewer."""
    (values,) = one.values()
    return [float(value) for value in values] if np.shape(values) == (5,) else []


# MMLU: option logits, and the right options by the questions' texts

MMLU = (
    Repository(
        "smartyfh/LLM-Uncertainty-Bench",
        re.compile(r"outputs_(base|chat_v1|chat_v2)/.+_mmlu_10k_(base|shared|task)_icl1\.pkl"),
    ),
    Repository(
        "alexandru-mihai-94/llm_uncertainty_estimation",
        re.compile(r"llm-uncertainty-mwe/data/mmlu_10k_answers\.json"),
        "llm-uncertainty-mwe/data",
    ),
    Repository(
        "chujiezheng/LLM-MCQ-Bias",
        re.compile(r"code/data_mmlu/(dev|test)/.+_(dev|test)\.csv"),
        "code/data_mmlu",
    ),
)
EXAMPLES = (1, 3, 5, 7, 9)
"""Questions that the authors' prompts have as examples."""
LETTERS = "ABCDEF"
RUN = re.compile(r"(.+)_mmlu_10k_(base|shared|task)_icl1")


def _questions(answers: Path, exams: Path) -> list[tuple[int, str, str, str]]:
    """Number, task, right letter and text of each question that has one right letter in the exams.

    A question of two tasks counts for the one that comes later. Texts are compared without their
    line breaks, which the answers' file has not.
    """
    letters: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for file in sorted(exams.glob("*/*.csv")):
        task = file.stem.rpartition("_")[0]
        with file.open(encoding="utf-8", newline="") as lines:
            for question, *options, letter in csv.reader(lines):
                right = options[LETTERS.index(letter)]
                letters[_words(question), _words(right)][letter] = task
    questions = []
    for row in json.loads((answers / "mmlu_10k_answers.json").read_text(encoding="utf-8")):
        found = letters[_words(row["question"]), _words(str(row["answer"]))]
        if len(found) == 1 and row["id"] not in EXAMPLES:
            ((letter, task),) = found.items()
            questions.append((int(row["id"]), task, letter, row["question"]))
    if not questions:
        raise PublicError("no question of mmlu_10k_answers.json is in the exams")
    return questions


def _words(text: str) -> str:
    return " ".join(text.split())


def _mmlu(folders: Sequence[Path], path: Path) -> None:
    """Option probabilities of each run: a checkpoint, a template and a prompt."""
    outputs, answers, exams = folders
    at, tasks, letters, _ = zip(*_questions(answers, exams), strict=True)
    gold = np.array([LETTERS.index(letter) for letter in letters], dtype=np.int8)
    runs, probabilities = [], []
    for template in ("base", "chat_v1", "chat_v2"):
        for file in sorted((outputs / f"outputs_{template}").glob("*.pkl")):
            match = RUN.fullmatch(file.stem)
            if match is not None:
                runs.append((match[1], template, match[2]))
                probabilities.append(_probabilities(file)[list(at)])
    whole = np.stack(probabilities)
    families, templates, prompts = zip(*runs, strict=True)
    np.savez_compressed(
        path,
        scores=(whole.argmax(axis=2) == gold).astype(np.uint8),
        probabilities=whole,
        gold=gold,
        n_options=np.full(len(gold), len(LETTERS), dtype=np.int8),
        models=np.array(["|".join(run) for run in runs]),
        items=np.array([f"mmlu10k-{number}" for number in at]),
        tasks=np.array(tasks),
        families=np.array(families),
        templates=np.array(templates),
        prompts=np.array(prompts),
    )


def _probabilities(file: Path) -> np.ndarray:
    """Probabilities of each question's options, shape (questions, 6), by their numbers.

    In half precision, logarithms too: rounded otherwise, other options are equally probable.
    """
    rows = numbers(file)
    logits = np.full((1 + max(int(row["id"]) for row in rows), len(LETTERS)), np.nan)
    for row in rows:
        logits[int(row["id"])] = row["logits_options"]
    logs = logits - logits.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    powers = np.exp(logs.astype(np.float16).astype(np.float32))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float16)


def _with_texts(folders: Sequence[Path], path: Path) -> None:
    """The same table without probabilities, with the questions as the items' texts."""
    with tempfile.TemporaryDirectory() as temporary:
        table = Path(temporary) / "mmlu.npz"
        _mmlu(folders, table)
        scores = load_scores(table)
    texts = [text for *_, text in _questions(folders[1], folders[2])]
    save_scores(scores.changed(items=scores.items.assign(text=texts), probabilities=None), path)


BUILT = {
    "arc_153.npz": Built((ARC,), _arc),
    "disco_estimates.npz": Built((DISCO,), _disco),
    "openllm2_math_musr.npz": Built((PREDICTION,), _leaderboard),
    "llmub_mmlu.npz": Built(MMLU, _mmlu),
    "mmlu_text.parquet": Built(MMLU, _with_texts),
}
"""Files that the record reads."""
