"""What the analyses of native sources say, in words made from their numbers."""

import math

import numpy as np

from fewbench.study.tailoredbench.families import WITHOUT, Affinity
from fewbench.study.tailoredbench.items import ItemMap, Spread
from fewbench.study.tailoredbench.trials import CHOSEN, Performance

SLIGHT = 0.02  # of the distance between any two items


def of_items(of: ItemMap) -> str:
    """How alike the two maps are."""
    first, second = (
        float(np.corrcoef(of.source[:, k], of.target[:, k])[0, 1]) if of.target[:, k].any() else 0.0
        for k in (0, 1)
    )
    alike = "in much the same order" if first >= 0.85 else "in different orders"
    return (
        f"Easy and hard items lie {alike} on both maps (r = {_two(first)} along the first axis); "
        f"along the second, r = {_two(second)}. The first axis holds "
        f"{of.source_share[0]:.0%} of the variance by sources and {of.target_share[0]:.0%} by "
        f"targets, the second {of.source_share[1]:.0%} and {of.target_share[1]:.0%}."
    )


def of_spread(of: Spread) -> str:
    """Whether medoids stand less well for items where targets answer, and why."""
    own, half = of.shares, of.half
    gap = own["targets"] - own["sources"]
    more = "farther from" if gap > SLIGHT else "nearer to" if gap < -SLIGHT else "about as far from"
    fit, rest = half["held_out"] - half["chose"], half["targets"] - half["held_out"]
    said = (
        f"Where targets answer, items are {more} the medoids that the sources chose: "
        f"{own['targets']:.0%} of the distance between any two items, {own['sources']:.0%} where "
        "the sources answer. "
    )
    if math.isfinite(fit) and gap > SLIGHT:
        part = min(max(fit / max(fit + rest, 1e-9), 0.0), 1.0)
        how = "All" if part > 0.95 else "Most" if part >= 0.6 else "Part" if part > 0.1 else "None"
        why = f"{how} of that is because medoids suit those who chose them"
        if rest > SLIGHT:
            why += f", {'little' if part >= 0.8 else 'the rest'} because targets are unlike sources"
        elif part <= 0.95:
            why += ", not because targets are unlike sources"
        said += (
            f"{why}: if half of the sources choose, it is {half['chose']:.0%} for them, "
            f"{half['held_out']:.0%} for the other half and {half['targets']:.0%} for targets."
        )
    return said.strip()


def of_nearness(of: Performance) -> str:
    """What the nearest and the farthest sources are worth."""
    first, last = str(of.steps.index[0]), str(of.steps.index[-1])
    agree = of.steps["agreement"]
    return (
        f"{_both(of, first, last, 'From the nearest to the farthest fifth of the sources')} "
        f"They agree with targets on {agree[first]:.0%} and {agree[last]:.0%} of the items. "
        f"{_verdict(of, last, 'The farthest fifth is', 'the nearest')}"
    )


def of_shares(of: Performance) -> str:
    """What fewer native sources cost."""
    first, last = str(of.steps.index[0]), str(of.steps.index[-1])
    words = f"With {_number(of, first)} of the native sources instead of all {_number(of, last)}"
    return f"{_both(of, last, first, words)} {_verdict(of, first, 'Fewer are', 'all of them')}"


def of_counts(of: Performance) -> str:
    """Whether the number found is a good one."""
    tried = of.steps.drop(index=CHOSEN)
    best, all_ = str(tried["mae"].idxmin()), str(tried.index[-1])
    own = of.at(CHOSEN)
    said = (
        f"The method finds {_number(of, CHOSEN)} native sources for a target: {_at(of, CHOSEN)}. "
        f"Of the numbers tried, {best} has the lowest error: {_at(of, best)}. "
    )
    if of.at(best)["mae"] >= own["mae"]:
        said += "No number tried has a lower error than the one found. "
    else:
        said += f"{_verdict(of, best, 'That is', 'what the method finds')} "
    if best != all_:
        said += f"All {all_} sources: {_at(of, all_)}. "
        said += _verdict(of, all_, "That is", "what the method finds")
    return said.strip()


def of_affinity(of: Affinity) -> str:
    """Whether families are preferred, beyond being equally good."""

    def ratio(name: str) -> str:
        if not math.isfinite(of.low[name]):
            return f"{_two(of.ratio[name])} times"
        return f"{_two(of.ratio[name])} times [{_two(of.low[name])} to {_two(of.high[name])}]"

    beyond = of.low["by_strength"] > 1
    kin = (
        "so there is more to it than being equally good"
        if beyond
        else "which being equally good may explain"
    )
    if not math.isfinite(of.low["chance"]):
        kin = "and nothing says whether by chance"
    elif not of.low["chance"] > 1:
        kin = "so that families are not clearly preferred"
    return (
        f"A target has {ratio('chance')} as many native sources of its own family as chance would "
        f"give, and {ratio('by_strength')} as many as the sources nearest in full score, {kin}."
    )


def of_absence(of: Performance, families: int) -> str:
    """What is lost without the target's family."""
    mean = f", mean over {families} families" if families > 1 else ""
    words = f"Without sources of the target's family, of as many sources{mean}"
    return (
        f"{_both(of, of.against, WITHOUT, words)} "
        f"{_verdict(of, WITHOUT, 'Without them it is', 'with them')}"
    )


def _both(of: Performance, one: str, other: str, words: str) -> str:
    a, b = of.at(one), of.at(other)
    return (
        f"{words}, the error goes from {_pp(a['mae'])} to {_pp(b['mae'])} pp and τ from "
        f"{_two(a['kendall_tau'])} to {_two(b['kendall_tau'])}."
    )


def _at(of: Performance, step: str) -> str:
    row = of.at(step)
    return f"error {_pp(row['mae'])} pp, τ {_two(row['kendall_tau'])}"


def _verdict(of: Performance, step: str, what: str, other: str) -> str:
    """Whether a step is better or worse than the one that it is held against, or not clearly."""
    row = of.at(step)
    if math.isnan(row["mae_gap_low"]):
        return "Without intervals nothing says whether that is more than chance."
    error = _sign(row["mae_gap_low"], row["mae_gap_high"])
    tau = -_sign(row["kendall_tau_gap_low"], row["kendall_tau_gap_high"])
    sides = {1: "worse", -1: "better"}
    if error == tau == 0:
        return f"{what} not clearly better or worse than {other}."
    if error == tau:
        return f"{what} clearly {sides[error]} than {other}, in error and in τ."
    if error and tau:
        return f"{what} {sides[error]} than {other} in error and {sides[tau]} in τ."
    return f"{what} clearly {sides[error or tau]} than {other} in {'error' if error else 'τ'} only."


def _sign(low: float, high: float) -> int:
    return 1 if low > 0 else -1 if high < 0 else 0


def _number(of: Performance, step: str) -> str:
    return f"{of.at(step)['natives']:.0f}"


def _pp(share: float) -> str:
    return f"{100 * share:.1f}" if math.isfinite(share) else "–"


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else "–"
