"""Any bytes, and changes that hypothesis finds: read, or refused by an error of ours."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fewbench.errors import FewbenchError
from fewbench.readers import Columns, read
from fewbench.scores import from_arrays, save_scores

from .conftest import whole

LONG = Columns("m", "i", "s")
WIDE = Columns(model="m")


ENDINGS = [".csv", ".tsv", ".jsonl", ".parquet", ".npz"]
QUICK = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def attempt(path, options):
    """Read a file that may be right by chance; anything but a FewbenchError is a leak."""
    with suppress(FewbenchError):
        assert read(path, **options).scores.n_items > 0


@pytest.mark.parametrize("ending", [*ENDINGS, "log"])
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode()))
@QUICK
def test_any_bytes(ending, content, tmp_path):
    name = "samples_t.jsonl" if ending == "log" else f"bad{ending}"
    (tmp_path / name).write_bytes(content)
    options = {} if ending in (".npz", "log") else {"columns": LONG}
    attempt(tmp_path / name, options)
    if ending == ".parquet":
        attempt(tmp_path / name, {"form": "scores"})


MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 3), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)


def mutated(data, mutations):
    """Cut, overwrite, insert or remove bytes at relative places."""
    for place, kind, some in mutations:
        at = int(place * len(data))
        if kind == 0:
            data = data[:at] + some + data[at + len(some) :]
        elif kind == 1:
            data = data[:at] + some + data[at:]
        elif kind == 2:
            data = data[:at] + data[at + 1 + len(some) :]
        else:
            data = data[: max(at, 1)]
    return data


@pytest.mark.parametrize("ending", ENDINGS)
@given(mutations=MUTATIONS)
@QUICK
def test_any_mutation(ending, mutations, tmp_path):
    path, options = whole(tmp_path, ending)
    path.write_bytes(mutated(path.read_bytes(), mutations))
    attempt(path, options)


@given(mutations=MUTATIONS)
@QUICK
def test_any_mutation_of_saved_scores(mutations, tmp_path):
    options = np.full((2, 2, 2), 0.5, np.float32)
    scores = from_arrays(np.eye(2), models=["a", "b"], probabilities=options)
    path = save_scores(scores, tmp_path / "bad.parquet")
    path.write_bytes(mutated(path.read_bytes(), mutations))
    with suppress(FewbenchError):
        found = read(path, form="scores").scores  # only unused bytes were changed
        assert found.equals(scores)
        assert np.array_equal(found.probabilities.of_items(np.arange(2)), options)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
FIELDS = ["doc_id", "doc", "target", "arguments", "resps", "filter", "metrics", "doc_hash", "acc"]


@given(changes=st.dictionaries(st.sampled_from([*FIELDS, "prompt_hash"]), JSON, min_size=1))
@QUICK
def test_any_fields_of_a_log(changes, tmp_path, logs):
    rows = [logs.choice(0, "q"), logs.choice(1, "r")]
    rows[1] = rows[1] | changes
    folder = logs.write("org/a", "t", rows[:1])
    file = next(folder.glob("samples_*"))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    attempt(folder, {})


@given(
    changes=st.dictionaries(
        st.sampled_from(["model_name", "config", "n-samples", "higher_is_better", "configs"]), JSON
    )
)
@QUICK
def test_any_fields_of_the_results(changes, tmp_path, logs):
    attempt(logs.write("org/a", "t", [logs.choice(0, "q")], **changes), {})


@given(rows=st.lists(st.fixed_dictionaries({"m": JSON, "i": JSON, "s": JSON}), max_size=3))
@QUICK
def test_any_values_of_a_table(rows, tmp_path):
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    attempt(tmp_path / "bad.jsonl", {"columns": LONG})
    attempt(tmp_path / "bad.jsonl", {"columns": WIDE})
