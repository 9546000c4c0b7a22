"""What a row of lm-eval says of each option, where it is multiple choice."""

from itertools import compress
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
    OptionTable(likelihoods=[-1.5, -inf], right=0, texts=['four', 'five!'], unconditional=[])
    """
    likelihoods = _likelihoods(row.get("resps"))
    if likelihoods is None:
        return None
    requests = _requests(row.get("arguments"), len(likelihoods))
    unconditional: list[float] = []
    if "acc_mutual_info" in metrics:
        # Up to 0.4.4 the requests alternate, later all with the question come first.
        without = [request[:1] == [""] for request in requests]
        unconditional = list(compress(likelihoods, without))
        given = [not bare for bare in without]
        likelihoods, requests = list(compress(likelihoods, given)), list(compress(requests, given))
        if len(unconditional) != len(likelihoods):
            return None
    if len(likelihoods) < 2:
        return None
    texts = _texts(requests, delimiter)
    if len(texts) != len(likelihoods):
        return OptionTable(likelihoods, unconditional=unconditional)
    return OptionTable(likelihoods, _right(row.get("target"), texts), texts, unconditional)


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


def _requests(arguments: Any, count: int) -> list[list[Any]]:
    """Return prompt and option of each request: in files a dictionary of dictionaries."""
    if isinstance(arguments, dict):
        arguments = [arguments.get(f"gen_args_{i}") for i in range(count)]
    if not isinstance(arguments, list):
        return [[]] * count
    found = [
        [request.get("arg_0"), request.get("arg_1")] if isinstance(request, dict) else request
        for request in arguments[:count]
    ]
    found = [request if isinstance(request, list) else [] for request in found]
    return found + [[]] * (count - len(found))


def _texts(requests: list[list[Any]], delimiter: str) -> list[str]:
    """Return the options' texts, [] where they stand in the context (as in winogrande)."""
    texts = [request[1] for request in requests if len(request) > 1 and isinstance(request[1], str)]
    if len(set(texts)) < 2:
        return []
    if all(text.startswith(delimiter) for text in texts):
        texts = [text.removeprefix(delimiter) for text in texts]
    return texts


def _right(target: Any, texts: list[str]) -> int:
    """Return the right option; a target that is also an option's text may mean either."""
    text = str(target)
    if text in texts or not (text.isascii() and text.isdigit()) or len(text) > 6:
        return -1
    return int(text) if int(text) < len(texts) else -1
