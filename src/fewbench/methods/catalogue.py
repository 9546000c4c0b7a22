"""Every published method by its name, with its paper's settings and citation.

A new method of fewbench's own is one file with its class, one line in `fewbench.methods.parts` and
one here; other packages add theirs through entry points.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, cast

from fewbench._names import did_you_mean
from fewbench._plugins import Added, Registry, added
from fewbench.errors import MethodError, WrongTypeError
from fewbench.methods.adaptive.fewbench import Fewbench
from fewbench.methods.base import AUTO, Method
from fewbench.methods.parts import WHOLE, MethodSet, added_parts, combine, is_own, stage_of
from fewbench.methods.static import StaticMethod
from fewbench.methods.written import Piece, split, with_settings


@dataclass(frozen=True)
class Entry:
    """A method of the catalogue.

    Attributes
    ----------
    parts : str
        Its parts, or its own name with settings, as the command line writes them.
    summary, citation : str
        What it does, in words, and its source.
    is_main : bool
        Whether it is listed among the methods to choose from; variants are not.
    file : str
        What `FILE` in the parts stands for, if the method needs a file.
    own : Method or None
        The method, where it is not made from its parts.
    """

    parts: str
    summary: str
    citation: str
    is_main: bool = False
    file: str = ""
    own: Method | None = None

    @cached_property
    def method(self) -> Method:
        """The method itself."""
        return _method_of(split(self.parts)) if self.own is None else self.own


AUTO_SAYS = (
    "it backtests a few methods on your source models and takes the best, most often fewbench, or "
    "random sampling if none is clearly better"
)
FEW = 20
"""With fewer independent source models than this, learning from them did not pay on real tables."""


@dataclass(frozen=True)
class Advice:
    """Methods to use where targets stand in one relation to the source models.

    Attributes
    ----------
    when : str
        The relation, in words.
    methods : tuple of str
        Names of the catalogue, the first to try first.
    reason : str
        Why these.
    least, below : int
        Independent source models for which it holds: `least` and more, fewer than `below`.
    """

    when: str
    methods: tuple[str, ...]
    reason: str
    least: int = 0
    below: int = 1_000_000


STRONGER = ("fewbench", "fewbench-static", "aipw")
"""Methods for a target that may be beyond the source models, by docs/results.md."""

ADVICE: tuple[Advice, ...] = (
    Advice(
        "targets like the source models",
        ("fewbench", "greedy-ridge", "fewbench-static"),
        "lowest error on real tables, about half of random sampling's; fewbench asks in rounds, "
        "the others once",
        least=FEW,
    ),
    Advice(
        "targets stronger, newer or weaker than all source models",
        STRONGER,
        "most other methods do worse than random sampling here",
        least=FEW,
    ),
    Advice(
        f"fewer than {FEW} independent source models",
        ("fewbench", "aipw", "random"),
        "few source models hardly show how items are related: the items are a random sample, and "
        "the estimate relies more on the target's own answers",
        below=FEW,
    ),
)

# Methods that choose further items after seeing answers; settings are written like a part's.
ADAPTIVE: Registry[type[Any]] = Registry(
    {
        "fewbench": Fewbench,
    },
    partial(added_parts, WHOLE),
)

SAMPLING = "simple random sampling; any textbook, e.g. Cochran 1977"
ZHANG = "Zhang, Dorner & Hardt 2025, arXiv 2506.07673"

ALONE = {"tasks": "a choice of tasks", "features": "features"}

OWN: dict[str, Entry] = {
    "fewbench": Entry(
        "fewbench",
        "items that most reduce the score's uncertainty; a Gaussian process and item curves",
        "ours",
        is_main=True,
    ),
    "fewbench-static": Entry(
        "optimal-design+kriging",
        "as the method fewbench, with all items chosen at once",
        "ours",
        is_main=True,
    ),
    "greedy-ridge": Entry(
        "greedy+answers+ridge",
        "items chosen one by one for ridge regression on the answers, and that regression",
        "forward selection: Chen, Billings & Luo 1989; prediction: Zhang et al. 2025",
        is_main=True,
    ),
    "aipw": Entry(
        "random+aipw",
        "random items; ridge regression over items predicts the others, corrected by residuals",
        ZHANG,
        is_main=True,
    ),
    "random": Entry(
        "random+mean",
        "random items, their mean",
        SAMPLING,
        is_main=True,
    ),
    "random-stratified": Entry(
        "stratified+mean",
        "random items of each task, their mean",
        SAMPLING,
    ),
    "random-linear": Entry(
        "random+subset-score+linear",
        "random items, a line from their score to the full score",
        ZHANG,
    ),
    "random-ridge": Entry(
        "random+answers+ridge",
        "random items, ridge regression on the answers",
        ZHANG,
    ),
    "task-means-ridge": Entry(
        "stratified+task-means+ridge",
        "random items of each task, their mean, ridge regression on the tasks' means",
        "ours",
    ),
}


def _added(*, with_file: bool) -> Iterator[Added]:
    """Yield the methods that packages add, those that need a file or the others."""
    for one in _entries():
        if bool(one.thing.file) == with_file:
            yield one


def _entries() -> Iterator[Added]:
    for one in added("methods"):
        match one.thing:
            case MethodSet(entries=entries):
                yield from (one.of(*named) for named in entries.items())
            case Method() as method:
                yield one.of(one.name, _entry(one, method.describe(), own=method))
            case type() as kind if issubclass(kind, Method):
                yield one.of(one.name, _entry(one, one.name))
            case _:
                raise one.refused("neither a Method nor a MethodSet of fewbench.methods")


def _entry(one: Added, parts: str, own: Method | None = None) -> Entry:
    """Return the entry of a method that is described by its docstring alone."""
    doc = (inspect.getdoc(one.thing) or "").partition("\n")[0]
    summary = getattr(one.thing, "summary", doc)
    return Entry(parts, summary, f"the package {one.package}", is_main=True, own=own)


CATALOGUE: Registry[Entry] = Registry(OWN, partial(_added, with_file=False))
"""Methods by name."""

WITH_FILE: Registry[Entry] = Registry({}, partial(_added, with_file=True))
"""Methods that need a file, by the part that reads it."""

OUTSIDE = ("flash-helm", "ucbe-lrf", "sort-and-search", "assessor", "clustering-semantic")
"""Methods of the papers' tables alone: in the repository, benchmarks/papers/methods."""

SHORTEST = 3
SHORT_FORMS = {"cf": "collaborative", "sands": "sortandsearch"}
"""What nothing in a name or source spells."""
BESIDE = re.compile(r"\b(as|so) in\b.*")
"""The part of a source that names a further method, or where a method was used."""
NOT_NAMES = re.compile(r"\bet al\b\.?|\b(19|20)\d\d\b|[^a-z0-9]")
"""What neither tells apart nor hides a published name: authors' company, years, punctuation."""


def published_as(name: str) -> tuple[str, ...]:
    """Return the methods that a paper's, an author's or a short name means.

    Names of methods that contain it come first, then those whose source names it; keys are of
    `CATALOGUE` and `WITH_FILE`.

    Examples
    --------
    >>> published_as("TailoredBench"), published_as("BenTo-le"), published_as("gp-IRT")
    (('tailored', 'tailored-as-printed'), ('bento-le',), ('gp-irt-anchor', 'gp-irt-random'))
    """
    sought, entries = _letters(name), {**CATALOGUE, **WITH_FILE}
    keys = {key: _letters(key) for key in entries}
    if exact := tuple(key for key in keys if keys[key] == sought):
        return exact
    if len(sought) < SHORTEST or sought in map(_letters, OUTSIDE):
        return ()
    named = [key for key in keys if sought in keys[key]]
    cited = [key for key in entries if sought in _letters(BESIDE.sub("", entries[key].citation))]
    return tuple(dict.fromkeys(named + cited))


def _letters(name: str) -> str:
    letters = NOT_NAMES.sub("", name.lower().replace("&", "and"))
    return SHORT_FORMS.get(letters, letters)


MOST_SUGGESTED = 5


def suggested(name: str, otherwise: str) -> str:
    """Return a hint for an unknown method: those that the name may mean, or the closest."""
    sought = _letters(name)
    if len(sought) >= SHORTEST and any(sought in _letters(key) for key in OUTSIDE):
        return "it is in the repository alone, in benchmarks/papers/methods"
    entries = {**CATALOGUE, **WITH_FILE}
    keys = published_as(name)
    if not keys and not get_close_matches(name, CATALOGUE, n=1):
        close = get_close_matches(sought, {key.partition("-")[0] for key in entries}, n=1)
        keys = published_as(close[0]) if close else ()
    if not keys:
        return did_you_mean(name, CATALOGUE, otherwise)
    keys = tuple(sorted(keys, key=lambda key: not entries[key].is_main))  # stable
    methods = [key if key in CATALOGUE else entries[key].parts for key in keys]
    others = f", or a variant: {', '.join(methods[1:MOST_SUGGESTED])}" if methods[1:] else ""
    return f"did you mean {methods[0]}{others}? {otherwise}"


def find_method(text: str) -> Method:
    """Return the method of a catalogue name, or of parts joined by +.

    Raises
    ------
    MethodError
        If a name or setting is unknown, or parts are out of order; for `auto`, which chooses a
        method and is not one itself.

    Examples
    --------
    >>> find_method("random-ridge").describe()
    'random+answers+ridge'
    >>> find_method("jsd(models=50)+pca+ridge(alpha=1)").describe()
    'jsd(models=50)+signature+pca+ridge(alpha=1.0)'
    """
    if not isinstance(text, str):
        raise WrongTypeError(
            f"a method is named by a text here, not by {type(text).__name__}",
            hint="only Evaluation, run, select_items and compare take your own methods",
        )
    name = text.strip()
    if not re.search(r"[+(]", name) and name in CATALOGUE:
        return CATALOGUE[name].method
    if name == AUTO:
        raise MethodError(
            f"auto is not a method: {AUTO_SAYS}",
            hint="use auto with fewbench start, select or compare, or with Evaluation, "
            "select_items or compare; elsewhere name a method, such as fewbench",
        )
    if name and not re.search(r"[+(]", name) and name not in ADAPTIVE:
        raise _unknown(name)
    pieces = split(name)
    if len(pieces) > 1 or pieces[0].name in ADAPTIVE:
        return _method_of(pieces)
    if pieces[0].name in CATALOGUE:
        raise MethodError(
            f"{pieces[0].name!r} has fixed settings",
            hint=f"write its parts out: {CATALOGUE[pieces[0].name].parts}",
        )
    raise _unknown(name)


def _unknown(name: str) -> MethodError:
    """Return the error for an unknown method name, which may be a part or a published name."""
    part = name.partition("(")[0]
    stage = stage_of(part)
    if stage is None:
        lists = "fewbench methods lists them; or write parts, as in random+answers+ridge"
        return MethodError(f"unknown method {name!r}", hint=suggested(name, lists), kind="unknown")
    joined = "join parts by +, as in random+answers+ridge; fewbench methods lists them"
    return MethodError(
        f"{name!r} is {ALONE.get(stage, f'a {stage}')} alone, not a method",
        hint=suggested(part, joined) if published_as(part) else joined,
    )


def _method_of(pieces: list[Piece]) -> Method:
    """Make a static method from its parts, or an adaptive one from its settings."""
    whole = [each.name for each in pieces if not is_own(each.name) and each.name in ADAPTIVE]
    if whole and len(pieces) == 1:
        return cast(Method, with_settings(ADAPTIVE[whole[0]], pieces[0].settings, whole[0]))
    if whole:
        raise MethodError(
            f"{whole[0]} is a whole method and takes no other parts",
            hint=f"write {whole[0]} by itself, or with settings as in {whole[0]}(name=value)",
            kind="conflict",
        )
    return StaticMethod(*combine(pieces))
