"""What a row of lm-eval says of each option, where it is multiple choice."""

from typing import Any

from fewbench.readers.numbers import as_number
from fewbench.readers.options import OptionTable


def option_table(row: dict[str, Any], metrics: list[str], delimiter: str) -> OptionTable | None:
    """Return what a row says of each option, None if it is not multiple choice.

    Parameters
    ----------
    row : dict
        A line of a samples file.
    metrics : list of str
        The metrics of the row; `acc_mutual_info` doubles the requests.
    delimiter : str
        What stands between prompt and option; it does not count as part of the option.

    Examples
    --------
    >>> found = option_table(
    ...     {
    ...         "resps": [[["-1.5", "False"]], [["-inf", "False"]]],
    ...         "arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": " four"},
    ...                       "gen_args_1": {"arg_0": "2 + 2 =", "arg_1": " five!"}},
    ...         "target": "0",
    ...     }, ["acc"], " ")
    >>> found
    OptionTable(likelihoods=[-1.5, -inf], right=0, texts=['four', 'five!'], unconditional=())
    """
    likelihoods = _likelihoods(row.get("resps"))
    if likelihoods is None:
        return None
    unconditional: list[float] = []
    if "acc_mutual_info" in metrics:
        if len(likelihoods) % 2:
            return None
        half = len(likelihoods) // 2
        likelihoods, unconditional = likelihoods[:half], likelihoods[half:]
    if len(likelihoods) < 2:
        return None
    texts = _texts(row.get("arguments"), len(likelihoods), delimiter)
    if texts is None:
        return OptionTable(likelihoods, unconditional=unconditional)
    right = _right(row.get("target"), texts)
    return OptionTable(likelihoods, right, texts, unconditional or ())


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
