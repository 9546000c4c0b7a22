"""A file that is no whole pack is answered by our own error, and costs little memory."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import load, save

import fewbench
from fewbench.errors import FewbenchError
from fewbench.scores.pack_files import _checksum
from fewbench.testing import simulate

LARGEST = 2**24  # a smaller limit, as the real one takes seconds to exceed


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound pack."""
    path = tmp_path_factory.mktemp("packs") / "sound.few"
    rng = np.random.default_rng(0)
    table = simulate(12, 40, 2, seed=1)
    values = table.values.copy()
    values[rng.random(values.shape) < 0.005] = np.nan
    table = fewbench.from_arrays(values, models=table.model_ids, tasks=list(table.items["task"]))
    made = fewbench.pack(table, "random+gp-irt", 8, backtest=False)
    whole = made.save(path).read_bytes()
    assert made.save(path, force=True).read_bytes() == whole
    return whole


def header(sound):
    """The header of a pack, and the bytes of its arrays."""
    end = 8 + int.from_bytes(sound[:8], "little")
    return json.loads(sound[8:end]), sound[end:]


def with_header(sound, **changes):
    """The pack with other fields of its header."""
    found, data = header(sound)
    text = json.dumps(found | changes).encode()
    return len(text).to_bytes(8, "little") + text + data


def text_of(sound):
    return header(sound)[0]["__metadata__"]["fewbench"]


def built(text, arrays):
    """A pack with a checksum that fits."""
    arrays = {**arrays, "sha256": _checksum(text, arrays)}
    return save(arrays, {"fewbench": text})


def described(sound, change):
    """The pack with another description."""
    record, arrays = json.loads(text_of(sound)), load(sound)
    change(record, arrays)
    return built(json.dumps(record), arrays)


def with_array(sound, name, array):
    """The pack with another array."""
    return built(text_of(sound), load(sound) | {f"0/{name}": np.ascontiguousarray(array)})


DESCRIPTIONS = {
    "newer schema": lambda r, _: r.update(schema_version=2),
    "no schema": lambda r, _: r.pop("schema_version"),
    "schema in words": lambda r, _: r.update(schema_version="one"),
    "no parts": lambda r, _: r.update(parts=[]),
    "unknown field": lambda r, _: r.update(code="print(1)"),
    "no name": lambda r, _: r["parts"][0].update(name=""),
    "keeps nothing": lambda r, _: r["parts"][0].update(keeps="nothing"),
    "keeps the table": lambda r, _: r["parts"][0].update(keeps="table"),
    "NaN": lambda r, _: r["parts"][0].update(scale=[0.0, float("nan"), False]),
    "scale reversed": lambda r, _: r["parts"][0].update(scale=[1.0, 0.0, False]),
    "short scale": lambda r, _: r["parts"][0].update(scale=[0.0]),
    "average": lambda r, _: r["parts"][0].update(average="median"),
    "items missing": lambda r, _: r["parts"][0]["items"].pop("item"),
    "tasks missing": lambda r, _: r["parts"][0]["items"].pop("task"),
    "tasks empty": lambda r, _: r["parts"][0]["items"].update(task=[""] * 40),
    "fewer tasks": lambda r, _: r["parts"][0]["items"]["task"].pop(),
    "other number of tasks": lambda r, _: r["parts"][0]["items"].update(task=["x"] * 40),
    "item twice": lambda r, _: r["parts"][0]["items"]["item"].__setitem__(0, "item-1"),
    "item no text": lambda r, _: r["parts"][0]["items"]["item"].__setitem__(0, 5),
    "one item less": lambda r, _: [column.pop() for column in r["parts"][0]["items"].values()],
    "no models": lambda r, _: r["parts"][0]["models"].update(model=[]),
    "model twice": lambda r, _: r["parts"][0]["models"].update(model=["a"] * 12),
    "one model more": lambda r, _: r["parts"][0]["models"]["model"].append("b"),
    "no method": lambda r, _: r["parts"][0]["provenance"].pop("method"),
    "unknown method": lambda r, _: r["parts"][0]["provenance"].update(method="no-such"),
    "other budget": lambda r, _: r["parts"][0]["provenance"].update(budget=9),
    "budget in words": lambda r, _: r["parts"][0]["provenance"].update(budget="many"),
    "no fingerprint": lambda r, _: r["parts"][0]["provenance"].pop("fingerprint"),
    "no subset": lambda r, _: r["parts"][0].update(subset=None),
    "subset of others": lambda r, _: r["parts"][0]["subset"]["items"].__setitem__(0, "item-x"),
    "subset is short": lambda r, _: r["parts"][0]["subset"]["items"].pop(),
    "subset is a text": lambda r, _: r["parts"][0].update(subset={"items": "item-1"}),
    "no array kept": lambda _, a: a.pop("0/kept"),
    "no array right": lambda _, a: a.pop("0/right"),
    "no array full": lambda _, a: a.pop("0/full"),
    "no array of units": lambda _, a: a.pop("0/errors/units"),
    "learned of no kind": lambda _, a: a.update({"0/learned/secret": a["0/kept"]}),
}
ARRAYS = {
    "whole numbers": lambda of: ("full", of["full"].astype(int)),
    "NaN": lambda of: ("full", np.where(of["full"] > 0.5, np.nan, of["full"])),
    "infinite": lambda of: ("tasks", of["tasks"] + np.inf),
    "scores above 1": lambda of: ("full", of["full"] + 1),
    "fewer models": lambda of: ("full", of["full"][1:]),
    "more tasks": lambda of: ("tasks", np.hstack([of["tasks"]] * 2)),
    "an item out of range": lambda of: ("kept", of["kept"] + 40),
    "an item before the first": lambda of: ("kept", of["kept"] - 40),
    "an item twice": lambda of: ("kept", of["kept"] * 0),
    "other items": lambda of: ("kept", (of["kept"] + 1) % 40),
    "no items": lambda of: ("kept", of["kept"][:0]),
    "fewer answers": lambda of: ("right", of["right"][:-1]),
    "answers as numbers": lambda of: ("right", of["right"] / 1.0),
    "errors of another shape": lambda of: ("errors/errors", of["errors/errors"][1:]),
    "errors of NaN": lambda of: ("errors/errors", of["errors/errors"] * np.nan),
    "negative units": lambda of: ("errors/units", -2 - of["errors/units"]),
    "a group too few": lambda of: ("errors/groups", of["errors/groups"][1:]),
    "groups in halves": lambda of: ("errors/groups", of["errors/groups"] / 2),
    "reliability of many": lambda of: ("learned/reliability", np.zeros(3)),
    "an item's difficulty too many": lambda of: (
        "learned/item response None intercept",
        np.zeros(41),
    ),
}


def broken(sound):
    """Malformed files by name."""
    arrays = {name.removeprefix("0/"): array for name, array in load(sound).items()}
    assert {"errors/units", "learned/item response None intercept"} <= set(arrays)
    for name, change in DESCRIPTIONS.items():
        yield name, described(sound, change)
    for name, change in ARRAYS.items():
        yield name, with_array(sound, *change(arrays))
    told = header(sound)[0]["0/full"]
    yield "an absurd shape", with_header(sound, **{"0/full": told | {"shape": [10**9, 10**9]}})
    yield "a negative shape", with_header(sound, **{"0/full": told | {"shape": [-1]}})
    yield "another shape", with_header(sound, **{"0/full": told | {"shape": [2, 6]}})
    yield "another type", with_header(sound, **{"0/full": told | {"dtype": "I64"}})
    yield "a type to come", with_header(sound, **{"0/full": told | {"dtype": "F1"}})
    yield "bytes of another", with_header(sound, **{"0/full": told | {"data_offsets": [0, 96]}})
    yield "bytes beyond", with_header(sound, **{"0/full": told | {"data_offsets": [2**40, 2**41]}})
    yield "no description", with_header(sound, __metadata__={})
    yield "a description of no text", with_header(sound, __metadata__={"fewbench": {}})
    yield "another description", with_header(sound, __metadata__={"fewbench": "{}"})
    yield (
        "no checksum",
        save({k: v for k, v in load(sound).items() if k != "sha256"}, {"fewbench": text_of(sound)}),
    )
    yield "no JSON", built("{", load(sound))
    yield "empty", b""
    yield "not safetensors", b"<html>404</html>"
    yield "a header of terabytes", (2**42).to_bytes(8, "little") + sound[8:]
    yield "a pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for share in (0.1, 0.5, 0.9, 0.999):
        yield f"cut at {share}", sound[: int(share * len(sound))]
    for at in (sound.index(b"fewbench") + 200, len(sound) - 9):
        yield f"byte {at} changed", sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]
    yield "something after it", sound + b"0"
    yield "too large", with_array(sound, "full", np.zeros(LARGEST // 8))


def test_malformed_packs_are_answered_by_our_own_error(sound, tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.scores.pack_files.MOST_FILE", LARGEST)
    path = tmp_path / "a.few"
    path.write_bytes(sound)
    assert fewbench.open_pack(path).start().ask()
    made = list(broken(sound))
    assert len(made) >= 60
    wrong = {}
    for name, data in made:
        path.write_bytes(data)
        if name in ("too large", "an absurd shape", "a header of terabytes"):
            tracemalloc.start()
        try:
            evaluation = fewbench.open_pack(path).start(["new"])
            evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
            evaluation.estimate()
            wrong[name] = "opened"
        except FewbenchError as error:
            if not error.message or ("a.few" not in str(error) and "pack" not in str(error)):
                wrong[name] = str(error)
        except Exception as error:
            wrong[name] = repr(error)
        if tracemalloc.get_traced_memory()[1] > LARGEST / 2:
            wrong[name] = "takes too much memory"
        tracemalloc.stop()
    assert not wrong
