"""Option probabilities of multiple-choice rows, from the logged log-likelihoods.

lm-eval scores `acc` by the largest log-likelihood, `acc_norm` by the largest per character of
the option, `acc_bytes` by the largest per byte, `acc_mutual_info` by the largest gain over the
option without its question. The softmax is taken of the same quantity, so that the most
probable option is the one that was scored.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench.readers._lm_eval.numbers import as_number

FloatArray = NDArray[np.float64]
LIKELIHOOD, UNCONDITIONAL, CHARACTERS, BYTES = range(4)


def option_table(
    row: dict[str, Any], metrics: list[str], delimiter: str
) -> tuple[FloatArray, int] | None:
    """Return what a row says of each option, and which one is right.

    Parameters
    ----------
    row : dict
        A line of a samples file.
    metrics : list of str
        The metrics of the row; `acc_mutual_info` doubles the requests.
    delimiter : str
        What stands between prompt and option; it does not count as part of the option.

    Returns
    -------
    (ndarray of shape (options, 4), int) or None
        Log-likelihood, the same without the question, characters and bytes of the text; NaN
        where unknown. The right option is -1 where the target is not clearly an index. None
        if the row is not multiple choice.

    Examples
    --------
    >>> table, gold = option_table(
    ...     {
    ...         "resps": [[["-1.5", "False"]], [["-inf", "False"]]],
    ...         "arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": " four"},
    ...                       "gen_args_1": {"arg_0": "2 + 2 =", "arg_1": " five!"}},
    ...         "target": "0",
    ...     }, ["acc"], " ")
    >>> table.tolist(), gold
    ([[-1.5, nan, 4.0, 4.0], [-inf, nan, 5.0, 5.0]], 0)
    """
    likelihoods = _likelihoods(row.get("resps"))
    if likelihoods is None:
        return None
    unconditional = [np.nan] * len(likelihoods)
    if "acc_mutual_info" in metrics:
        if len(likelihoods) % 2:
            return None
        half = len(likelihoods) // 2
        likelihoods, unconditional = likelihoods[:half], likelihoods[half:]
    if len(likelihoods) < 2:
        return None
    table = np.full((len(likelihoods), 4), np.nan)
    table[:, LIKELIHOOD], table[:, UNCONDITIONAL] = likelihoods, unconditional
    texts = _texts(row.get("arguments"), len(likelihoods), delimiter)
    if texts is None:
        return table, -1
    table[:, CHARACTERS] = [len(text) for text in texts]
    table[:, BYTES] = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    return table, _right(row.get("target"), texts)


def compared(table: FloatArray, metric: str) -> FloatArray:
    """Return the quantity by which a metric compares options, for tables of shape (…, 4)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # an option may be the empty text
        if metric == "acc_norm":
            return np.asarray(table[..., LIKELIHOOD] / table[..., CHARACTERS])
        if metric == "acc_bytes":
            return np.asarray(table[..., LIKELIHOOD] / table[..., BYTES])
        if metric == "acc_mutual_info":
            return np.asarray(table[..., LIKELIHOOD] - table[..., UNCONDITIONAL])
    return np.asarray(table[..., LIKELIHOOD])


def softmax(values: FloatArray, counts: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return probabilities of the first `counts` options of each row, 0 for the others.

    A row of NaN where a value is NaN or +inf, or all are -inf.

    Examples
    --------
    >>> softmax(np.array([[0.0, -np.inf, 7.0], [np.nan, 0.0, 0.0]]), np.array([2, 3])).tolist()
    [[1.0, 0.0, 0.0], [nan, nan, nan]]
    """
    there = np.arange(values.shape[1]) < counts[:, None]
    inside = np.where(there, values, -np.inf)
    largest = inside.max(axis=1)
    usable = np.isfinite(largest)  # NaN and +inf come through max, and so does -inf for all
    inside[~usable] = np.nan
    weights = np.exp(inside - np.where(usable, largest, 0.0)[:, None])
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def _likelihoods(resps: Any) -> list[float] | None:
    """Return each request's log-likelihood; resps are request × repeat × (value, is_greedy)."""
    if not isinstance(resps, list):
        return None
    values = []
    for request in resps:
        answer = request[0] if isinstance(request, list) and request else None
        if not isinstance(answer, list) or len(answer) != 2:
            return None
        value = as_number(answer[0])
        if value is None or str(answer[1]) not in ("True", "False"):
            return None
        values.append(value)
    return values


def _texts(arguments: Any, count: int, delimiter: str) -> list[str] | None:
    """Return the options' texts, None where they stand in the context (as in winogrande)."""
    if isinstance(arguments, dict):
        arguments = [arguments.get(f"gen_args_{i}") for i in range(count)]
    if not isinstance(arguments, list) or len(arguments) < count:
        return None
    texts = []
    for request in arguments[:count]:
        if isinstance(request, dict):
            text = request.get("arg_1")
        else:
            text = request[1] if isinstance(request, list) and len(request) > 1 else None
        if not isinstance(text, str):
            return None
        texts.append(text)
    if len(set(texts)) == 1:
        return None
    if all(text.startswith(delimiter) for text in texts):
        texts = [text.removeprefix(delimiter) for text in texts]
    return texts


def _right(target: Any, texts: list[str]) -> int:
    """Return the right option; a target that is also an option's text may mean either."""
    text = str(target)
    if text in texts or not (text.isascii() and text.isdigit()) or len(text) > 6:
        return -1
    return int(text) if int(text) < len(texts) else -1
