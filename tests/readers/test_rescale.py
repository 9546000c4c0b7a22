"""Models on another scale than the others of their table."""

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.errors import RangeError, ReaderError
from fewbench.readers import Columns
from fewbench.testing import simulate

TABLE = simulate(6, 40, seed=1)
NAME = TABLE.model_ids[2]


def write(folder, layout):
    """Write the table with one model in percent; return how it is read."""
    frame = pd.DataFrame(TABLE.values, index=list(TABLE.model_ids), columns=list(TABLE.item_ids))
    frame.loc[NAME] *= 100
    frame.index.name = "model"
    path = folder / f"{layout}.csv"
    if layout == "wide":
        frame.to_csv(path)
        return path, {"columns": Columns("model")}
    if layout == "transposed":
        frame.T.rename_axis("item").to_csv(path)
        return path, {"columns": Columns(None, "item"), "transposed": True}
    long = frame.reset_index().melt("model", var_name="item", value_name="score")
    long.to_csv(path, index=False)
    return path, {"columns": Columns("model", "item", "score")}


@pytest.mark.parametrize("layout", ["wide", "transposed", "long"])
def test_one_model_in_percent_is_rescaled(layout, tmp_path):
    path, how = write(tmp_path, layout)
    with pytest.raises(RangeError) as error:
        fewbench.import_results(path, **how)
    assert "all of 1 model" in error.value.message
    assert f"--rescale {NAME}=100" in error.value.hint
    read = fewbench.import_results(path, rescale={NAME: 100}, **how).scores
    own = read.take(models=read.model_positions(TABLE.model_ids))
    assert np.array_equal(own.take(items=own.positions(TABLE.item_ids)).values, TABLE.values)
    with pytest.raises(ReaderError, match="no model 'x' to rescale"):
        fewbench.import_results(path, rescale={"x": 100}, **how)
    with pytest.raises(ReaderError, match="by 0"):
        fewbench.import_results(path, rescale={NAME: 0}, **how)
