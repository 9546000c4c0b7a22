"""BM25 between the tasks' texts, in the place of transferability (the paper's baseline)."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from fewbench._names import some
from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError, MissingExtraError
from fewbench.methods.selection.semantic import item_texts
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.scores import Scores

BLOCK = 4096  # words at a time
WORD = re.compile(r"\w+")


def bm25(texts: Sequence[str]) -> FloatArray:
    """Return how well each text answers each as a query, shape (texts, texts).

    Entry [i, j] is the BM25 score (Robertson & Zaragoza 2009; k1 = 1.5, b = 0.75) of text i for all
    words of text j, for each word as often as it is there.

    Parameters
    ----------
    texts : sequence of str
        One a task: its instruction, questions and answers.

    Raises
    ------
    MissingExtraError
        If bm25s is not installed.
    MethodError
        If a text has no words.
    """
    try:
        import bm25s
        from scipy.sparse import csr_array
    except ImportError as error:
        raise MissingExtraError(
            "comparing texts by BM25 needs bm25s", hint="pip install 'fewbench[text]'"
        ) from error
    words = [WORD.findall(text.lower()) for text in texts]
    if empty := [str(i + 1) for i, found in enumerate(words) if not found]:
        raise MethodError(f"a task's text has no words: the {some(empty)}. of {len(texts)}")
    ids = {word: i for i, word in enumerate(sorted({word for found in words for word in found}))}
    at = [[i, ids[word]] for i, said in enumerate(words) for word in said]
    of_text, of_word = np.array(at).T
    counts = csr_array((np.ones(len(at)), (of_text, of_word)), (len(texts), len(ids)))
    engine = bm25s.BM25(k1=1.5, b=0.75)
    engine.index(words, show_progress=False)
    # A word's worth in every text, looked up once; a query adds them up.
    found = np.zeros((len(texts), len(texts)))
    all_words = list(ids)
    for start in range(0, len(ids), BLOCK):
        worth = np.array([engine.get_scores([word]) for word in all_words[start : start + BLOCK]])
        found += counts[:, start : start + BLOCK] @ worth
    return np.ascontiguousarray(found.T)


def of_texts(texts: Mapping[str, str], names: Sequence[str], sizes: IntArray) -> TaskMatrix:
    """Compare tasks by their texts.

    Parameters
    ----------
    texts : mapping of str to str
        A task's whole text, by its name.
    names, sizes
        The tasks and their numbers of questions; MethodError if one has no text.
    """
    if lacking := [name for name in names if name not in texts]:
        raise MethodError(f"no text is given of {len(lacking)} tasks: {some(lacking)}")
    return TaskMatrix(bm25([texts[name] for name in names]), tuple(names), sizes, None, "BM25")


def of_items(scores: Scores) -> TaskMatrix:
    """Compare tasks by the texts of their items (column `text`)."""
    if "text" not in scores.items:
        raise MethodError(
            "the items have no texts",
            hint="import them with --items FILE, a table with columns item and text",
        )
    said = np.array(item_texts(scores), dtype=object)
    texts = {task: "\n".join(said[scores.task_of == at]) for at, task in enumerate(scores.tasks)}
    return of_texts(texts, scores.tasks, np.bincount(scores.task_of, minlength=len(scores.tasks)))
