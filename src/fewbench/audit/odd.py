"""Findings on models that answer in an odd way: without regard to difficulty, or always alike."""

import numpy as np
from numpy.typing import NDArray

from fewbench.audit.finding import Finding, Table, counted, share
from fewbench.scores import Scores

ONE_OPTION = 0.8
MEDIUM = 0.5  # of a standard deviation: Cohen's medium effect
SIDE = 1.645  # standard errors, for a one-sided bound at 95 %
FEWEST = 5  # models, to have others
ANSWERS = 20  # to items of three options or more


def odd_findings(scores: Scores) -> list[Finding]:
    """Return the findings on models that answer in an odd way."""
    found = [_unlike_all(scores), _one_option(scores)]
    return [finding for finding in found if finding is not None]


def _unlike_all(scores: Scores) -> Finding | None:
    """Models whose right answers are hardly on the items that others find easy."""
    if scores.n_models < FEWEST:
        return None
    effect, error = _follows_difficulty(scores)
    with np.errstate(invalid="ignore"):
        odd = np.flatnonzero(effect + SIDE * error < MEDIUM)
    if not len(odd):
        return None
    odd = odd[np.argsort(effect[odd], kind="stable")]
    full = scores.scale.from_unit(np.nanmean(scores.values, axis=1))
    return Finding(
        "unlike-all",
        "caution",
        f"{counted(len(odd), 'model answers', 'models answer')} almost without regard to what is "
        "hard for the others (right and wrong items differ in easiness by less than half a "
        "standard deviation)",
        "look at their outputs: a wrong prompt format, an answer that could not be read, or "
        "guessing; they teach methods little, so import the rest without those that are broken",
        "models",
        tuple(scores.model_ids[m] for m in odd),
        table=Table(
            ("model", "score", "easier by (sd)"),
            tuple(
                (scores.model_ids[m], round(float(full[m]), 3), round(float(effect[m]), 2))
                for m in odd.tolist()
            ),
        ),
    )


def _follows_difficulty(scores: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much easier for others a model's right items are than its wrong ones, in sd; its error.

    NaN for a model that scores the same everywhere, or is alone.
    """
    run = ~np.isnan(scores.values)
    x = np.where(run, scores.values, 0.0)
    others = run.sum(axis=0) - run
    mean = (x.sum(axis=0) - x) / np.maximum(others, 1)
    there = run & (others > 0)
    n = np.maximum(there.sum(axis=1), 1)

    def centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
        of_row = np.where(there, values, 0.0).sum(axis=1) / n
        return np.where(there, values - of_row[:, None], 0.0)

    own, easy = centred(x), centred(mean)
    variance, spread = (own**2).sum(axis=1) / n, np.sqrt((easy**2).sum(axis=1) / n)
    known = (variance > 1e-9) & (spread > 1e-9)
    slope = (own * easy).sum(axis=1) / n / np.where(known, variance * spread, 1.0)
    error = 1.0 / np.sqrt(n * np.where(known, variance, 1.0))
    return np.where(known, slope, np.nan), np.where(known, error, np.nan)


def _one_option(scores: Scores) -> Finding | None:
    """Models that choose the same option nearly always."""
    if scores.probabilities is None:
        return None
    n_options = scores.items["n_options"].to_numpy(np.intp)
    rows = []
    for name, options in zip(scores.model_ids, scores.probabilities.by_model(), strict=True):
        ran = ~np.isnan(options[:, 0]) & (n_options > 2)
        if ran.sum() < ANSWERS:
            continue
        votes = np.bincount(options[ran].argmax(axis=1))
        if votes.max() >= ONE_OPTION * votes.sum():
            rows.append((name, int(votes.argmax()) + 1, round(float(votes.max() / votes.sum()), 2)))
    if not rows:
        return None
    rows.sort(key=lambda row: (-row[2], row[0]))
    return Finding(
        "one-option",
        "caution",
        f"{counted(len(rows), 'model chooses', 'models choose')} the same option on "
        f"{share(ONE_OPTION)} or more of the items",
        "their score says where the key lies, not what they know: check the prompt format, and "
        "import the rest without those that are broken",
        "models",
        tuple(name for name, _, _ in rows),
        table=Table(("model", "option", "share"), tuple(rows)),
    )
