"""What tasks are compared by, and how similar they are (BenTo, Eq. 2-4 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fewbench.errors import MethodError
from fewbench.methods.needs import item_texts
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.scores.families import families_of
from fewbench.support import FloatArray, IntArray, counted, some
from fewbench_papers.algorithms.clustering.kmeans import eigenmaps, row_cosines, spectral_clusters
from fewbench_papers.bento.transferability import Transferability, sizes_of

SOURCE_SCORES = "scores of source models"


@dataclass(frozen=True, eq=False)
class TaskMatrix:
    """Tasks with a row of numbers each, their sizes and how easy they are.

    - `rows`, shape (tasks, columns): Transferability to each target, scores of each source model,
      or BM25 with each task's text.
    - `sizes`, shape (tasks,): Questions of each task; all 1 if unknown.
    - `ease`, shape (tasks,): Score on each task, of one model or of the source models on average.
    - `kind`: What the rows are, in words.
    - `weigh_tasks`: Whether the full score is the mean over tasks instead of questions.
    - `models`, `families`: For source scores: names and families ("" for none) of the columns'
      models.
    """

    rows: FloatArray
    names: tuple[str, ...]
    sizes: IntArray
    ease: FloatArray | None
    kind: str
    weigh_tasks: bool = False
    models: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    @property
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return bool((self.sizes > 1).any())

    def with_sizes(self, sizes: Mapping[str, int]) -> "TaskMatrix":
        """Return the same rows with known numbers of questions; MethodError if one is missing."""
        return replace(self, sizes=sizes_of(self.names, sizes))

    @cached_property
    def groups(self) -> IntArray:
        """Group numbers of models that count as one, shape (columns,) (see `column_groups`)."""
        return column_groups(self.rows.T, self.families)

    def of_models(self, models: IntArray) -> "TaskMatrix":
        """Return source scores of the models at some positions."""
        rows = np.ascontiguousarray(self.rows[:, models])
        return replace(
            self,
            rows=rows,
            ease=rows.mean(axis=1),
            models=tuple(self.models[at] for at in models) if self.models else (),
            families=tuple(self.families[at] for at in models) if self.families else (),
        )

    @property
    def weights(self) -> FloatArray:
        """Weight of each task in the full score, shape (tasks,), with sum 1."""
        counts = np.ones(len(self.names)) if self.weigh_tasks else self.sizes
        return np.asarray(counts / counts.sum())

    @classmethod
    def of_transfer(
        cls,
        transfer: Transferability,
        seeds: IntArray | None = None,
        *,
        weigh_tasks: bool = False,
    ) -> "TaskMatrix":
        """Use the mean over all or some seeds; ease is known if each task was a target."""
        rows = transfer.mean if seeds is None else transfer.mean_over(seeds)
        ease = rows.mean(axis=0) if transfer.is_square else None
        sizes = transfer.n_questions
        return cls(rows, transfer.tasks, sizes, ease, "in-context transferability", weigh_tasks)

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskMatrix":
        """Use source models' scores on each task, shape (tasks, models)."""
        rows = np.ascontiguousarray(scores.task_scores().T)
        sizes = np.bincount(scores.task_of, minlength=len(rows))
        return cls(
            rows,
            tuple(scores.tasks),
            sizes,
            rows.mean(axis=1),
            SOURCE_SCORES,
            scores.average == "macro",
            tuple(scores.model_ids),
            tuple(families_of(scores)),
        )

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise MethodError(
                "there is only one task, so there is nothing to choose", kind="too-few"
            )
        if not np.isfinite(self.rows).all():
            raise MethodError(f"some of the tasks' {self.kind} is missing")


def column_groups(rows: FloatArray, families: tuple[str, ...] = ()) -> IntArray:
    """Number groups of models of one family or with equal scores, shape (models,).

    `rows` has shape (models, tasks); `families` has "" for models without a family.

    >>> column_groups(np.array([[0.1], [0.2], [0.3], [0.2]]), ("x", "", "x", "")).tolist()
    [0, 1, 0, 1]
    """
    from scipy.sparse.csgraph import connected_components

    same = np.unique(np.round(rows, 12), axis=0, return_inverse=True)[1].reshape(len(rows))
    linked = np.equal.outer(same, same)
    if families:
        names = np.array(families)
        linked |= np.equal.outer(names, names) & (names != "")[:, None]
    labels = connected_components(linked, directed=False)[1]
    _, first, group_of = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[group_of], dtype=np.intp)


K1, B, FLOOR = 1.5, 0.75, 0.25
"""Constants of BM25; a word of most texts counts this share of the mean weight of a word."""


def bm25(texts: Sequence[str]) -> FloatArray:
    """Return the BM25 score of each other text for all words of each text, shape (texts, texts).

    Entry [i, j] scores text j for the words of text i, with repetitions: Okapi BM25 (Robertson &
    Zaragoza 2009) as in BenTo's program. Words are what spaces separate. There is one text per
    task: its instruction, questions and answers.

    Raises MethodError if a text has no words.

    >>> bm25(["sea salt", "salt and sand", "sand castles", "moon"]).round(2)[0].tolist()
    [0.85, 0.0, 0.0, 0.0]
    """
    from scipy.sparse import csr_array

    words = [text.split() for text in texts]
    if empty := [str(i + 1) for i, of_text in enumerate(words) if not of_text]:
        raise MethodError(f"a task's text has no words: the {some(empty)}. of {len(texts)}")
    ids = {
        word: i for i, word in enumerate(sorted({word for of_text in words for word in of_text}))
    }
    lengths = np.array([len(of_text) for of_text in words])
    column = np.array([ids[word] for of_text in words for word in of_text])
    row = np.repeat(np.arange(len(words)), lengths)
    counts = csr_array((np.ones(len(row)), (row, column)), (len(words), len(ids)))
    found = np.bincount(counts.indices, minlength=len(ids))  # in how many texts
    weight = np.log(len(words) - found + 0.5) - np.log(found + 0.5)
    weight = np.where(weight < 0, FLOOR * weight.mean(), weight)
    scale = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), np.diff(counts.indptr))
    worth = counts.copy()
    worth.data = weight[counts.indices] * counts.data * (K1 + 1) / (counts.data + scale)
    return np.asarray((counts @ worth.T).toarray(), dtype=np.float64)


def of_texts(texts: Mapping[str, str], names: Sequence[str], sizes: IntArray) -> TaskMatrix:
    """Compare tasks by their whole texts, by name; MethodError if a task has none."""
    if lacking := [name for name in names if name not in texts]:
        raise MethodError(f"{counted(len(lacking), 'task')} without a text: {some(lacking)}")
    return TaskMatrix(bm25([texts[name] for name in names]), tuple(names), sizes, None, "BM25")


def of_items(scores: Scores) -> TaskMatrix:
    """Compare tasks by the texts of their items (column `text`)."""
    if "text" not in scores.items:
        raise MethodError(
            "the items have no texts",
            hint="import them with --items FILE, a table with columns item and text",
            kind="missing",
        )
    item_text = np.array(item_texts(scores), dtype=object)
    texts = {
        task: "\n".join(item_text[scores.task_of == at]) for at, task in enumerate(scores.tasks)
    }
    return of_texts(texts, scores.tasks, np.bincount(scores.task_of, minlength=len(scores.tasks)))


Scaling = Literal["centre", "sum", "z-score"]

IDENTITY = 0.1
"""Sum of a task's squared cosines with the others below which they are not informative.

With K eigenvectors of N tasks, the sum is about N / K - 1.
"""


@dataclass(frozen=True)
class Similarity:
    """Settings that turn a transferability matrix into similarities of tasks.

    - `scaling` ("centre", "sum", "z-score"): Treatment of each target's column: subtract its mean
      (Eq. 2), divide by its sum (needed for the published selection), or subtract the mean and
      divide by the standard deviation (the paper's FLAN).
    - `components`: Eigenvectors of the Laplacian eigenmaps, below the number of tasks; 0 takes ten,
      or a third of the tasks if there are fewer than thirty, at least two.
    - `printed`: Whether a task's similarity with itself counts in the Laplacian, as Eq. 4 is
      printed; the authors' program leaves it out.
    - `t`: The constant c of S = c - E (Eq. 3) is t times the largest distance, from 1.01 to 1,000.
      It changes the embedding only: a smaller t makes distances count more.
    """

    scaling: Scaling = "centre"
    components: int = 0
    printed: bool = False
    t: float = 1.5

    def __post_init__(self) -> None:
        check_number("components", self.components, 0)
        check_number("t", self.t, 1.01, 1000)

    def scaled(self, matrix: FloatArray) -> FloatArray:
        """Scale the columns of a matrix, shape (sources, targets)."""
        if self.scaling == "sum":
            total = matrix.sum(axis=0)
            if (np.abs(total) < np.finfo(float).tiny).any():
                raise MethodError("a target's column adds up to 0", hint="use scaling=centre")
            return np.asarray(matrix / total)
        centred = matrix - matrix.mean(axis=0)
        if self.scaling == "centre":
            return np.asarray(centred)
        spread = centred.std(axis=0)
        return np.asarray(centred / np.where(spread > 0, spread, 1.0))

    def distances(self, matrix: FloatArray) -> FloatArray:
        """E: Euclidean distances between the rows of a scaled matrix, shape (sources, sources)."""
        from scipy.spatial.distance import cdist

        rows = self.scaled(matrix)
        return np.asarray(cdist(rows, rows))

    def sim(self, matrix: FloatArray) -> FloatArray:
        """S = c - E, shape (sources, sources), all positive unless all tasks are the same."""
        e = self.distances(matrix)
        return np.asarray(self.t * (e.max() or 1.0) - e)

    def embedding(self, matrix: FloatArray) -> FloatArray:
        """A': the first eigenvectors of the Laplacian of S, shape (sources, components).

        MethodError if there are as many components as tasks, or fewer than two.
        """
        n = len(matrix)
        components = self.components or default_components(n)
        least = min(2, n - 1)
        if not least <= components < n:
            why = (
                "with all of them each task is at a right angle to each other, and rounding "
                "decides the choice"
                if components >= n
                else "they do not tell tasks apart"
            )
            raise MethodError(
                f"{components} eigenvectors of {n} tasks: {why}",
                hint=f"components from {least} to {n - 1}",
            )
        return eigenmaps(self.sim(matrix), components, self_loops=self.printed)

    def le(self, matrix: FloatArray) -> FloatArray:
        """S': cosines between the rows of the embedding, shape (sources, sources)."""
        return row_cosines(self.embedding(matrix))

    def clusters(self, matrix: FloatArray, seed: int) -> IntArray:
        """Spectral clusters: k-means of the embedding; as many as components."""
        rows = self.embedding(matrix)
        return spectral_clusters(rows, rows.shape[1], seed)


def default_components(n_tasks: int) -> int:
    """Return the default number of eigenvectors."""
    return min(10, max(2, n_tasks // 3), n_tasks - 1)


def is_near_identity(cosines: FloatArray) -> bool:
    """Whether hardly any task is like another, so that all choices are nearly as good.

    >>> is_near_identity(np.eye(3)), is_near_identity(np.eye(3) * 0.5 + 0.5)
    (True, False)
    """
    others = np.array(cosines)
    np.fill_diagonal(others, 0.0)
    return bool((others**2).sum(axis=1).mean() <= IDENTITY)
