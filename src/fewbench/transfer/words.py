"""How numbers of things appear in messages."""


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, which takes an s unless there is one.

    Examples
    --------
    >>> counted(1, "seed"), counted(2000, "question")
    ('1 seed', '2,000 questions')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
