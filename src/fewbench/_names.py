"""How lists of names appear in messages: a few, then a count."""

from collections.abc import Iterable


def some(names: Iterable[object], most: int = 3) -> str:
    """Return the first `most` names in quotes and how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c", "d"], most=2)
    "'a', 'b' and 2 more"
    """
    listed = [str(name) for name in names]
    head = ", ".join(repr(name) for name in listed[:most])
    return head if len(listed) <= most else f"{head} and {len(listed) - most} more"
