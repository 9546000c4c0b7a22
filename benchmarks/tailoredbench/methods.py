"""TailoredBench and other methods: what an absent family costs."""

import numpy as np
import pandas as pd

from fewbench.scores import Scores
from tailoredbench.native_sources import WITH, WITHOUT
from tailoredbench.trials import METRICS, measure


def of_methods(runs: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Measure each method with and without sources of the targets' family (Table 12).

    Parameters
    ----------
    runs : DataFrame
        Runs of `without_family`, with a column `repeat`.

    Returns
    -------
    DataFrame
        One row per method: for mae and kendall_tau the means with and without, and the rise
        without (`…_gap`) with its 90 % interval.
    """
    rows = []
    for method, part in runs.groupby("method", sort=False):
        steps = measure(part, WITH, seed, ("repeat", "family")).steps
        row: dict[str, object] = {"method": method}
        for metric in METRICS:
            row |= {f"{metric}_{step}": steps.at[step, metric] for step in (WITH, WITHOUT)}
            gaps = [f"{metric}_gap{end}" for end in ("", "_low", "_high")]
            row |= {gap: steps.at[WITHOUT, gap] for gap in gaps}
        rows.append(row)
    return pd.DataFrame(rows)


def with_families(scores: Scores, words: str) -> Scores:
    """Name families by words in the models' names, as "llama,qwen,mistral+mixtral+zephyr".

    A family has the name of its first word, without dashes at its ends. A model with words of no
    family or of several has none.
    """
    families = [family.lower().split("+") for family in words.split(",")]
    named = []
    for model in scores.model_ids:
        found = [any(word in model.lower() for word in family) for family in families]
        named.append(families[int(np.argmax(found))][0].strip("-") if sum(found) == 1 else "")
    return scores.changed(models=scores.models.assign(family=np.array(named, dtype=object)))
