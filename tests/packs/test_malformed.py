"""A file that is no whole pack is answered by our own error, and costs little memory."""

import hashlib
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import fewbench
from fewbench.errors import FewbenchError
from fewbench.testing import simulate

MEMBERS, LARGEST = 300, 2**24  # smaller limits, as the real ones take seconds to exceed


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The files of a sound pack, and its bytes."""
    path = tmp_path_factory.mktemp("packs") / "sound.few"
    rng = np.random.default_rng(0)
    table = simulate(12, 40, 2, seed=1)
    values = table.values.copy()
    values[rng.random(values.shape) < 0.005] = np.nan
    table = fewbench.from_arrays(values, models=table.model_ids, tasks=list(table.items["task"]))
    fewbench.pack(table, "random+gp-irt", 8, backtest=False).save(path)
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}, path.read_bytes()


def zipped(members, twice=(), method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in [*members.items(), *twice]:
            file.writestr(name, data)
    return buffer.getvalue()


def described(members, change):
    """The pack with another description, and a checksum that fits."""
    record = json.loads(members["pack.json"])
    change(record)
    text = json.dumps(record).encode()
    checksum = hashlib.sha256(text).hexdigest().encode()
    return {**members, "pack.json": text, "checksum": checksum}


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def with_array(members, name, data):
    """The pack with another array, and checksums that fit."""
    own = members.copy()

    def change(record):
        told = record["parts"][0]["arrays"][name]
        own[told["file"]] = data
        told["sha256"] = hashlib.sha256(data).hexdigest()

    return zipped(described(own, change) | {k: v for k, v in own.items() if k[0].isdigit()})


def arrays_of(members):
    record = json.loads(members["pack.json"])["parts"][0]["arrays"]
    return {
        name: np.load(io.BytesIO(members[told["file"]]), allow_pickle=False)
        for name, told in record.items()
    }


def header(shape, kind="<f8"):
    buffer = io.BytesIO()
    told = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, told)
    return buffer.getvalue()


DESCRIPTIONS = {
    "newer schema": lambda r: r.update(schema_version=2),
    "no schema": lambda r: r.pop("schema_version"),
    "schema in words": lambda r: r.update(schema_version="one"),
    "no parts": lambda r: r.update(parts=[]),
    "unknown field": lambda r: r.update(code="print(1)"),
    "no name": lambda r: r["parts"][0].update(name=""),
    "keeps nothing": lambda r: r["parts"][0].update(keeps="nothing"),
    "keeps the table": lambda r: r["parts"][0].update(keeps="table"),
    "NaN": lambda r: r["parts"][0].update(scale=[0.0, float("nan"), False]),
    "scale reversed": lambda r: r["parts"][0].update(scale=[1.0, 0.0, False]),
    "short scale": lambda r: r["parts"][0].update(scale=[0.0]),
    "average": lambda r: r["parts"][0].update(average="median"),
    "items missing": lambda r: r["parts"][0]["items"].pop("item"),
    "tasks missing": lambda r: r["parts"][0]["items"].pop("task"),
    "tasks empty": lambda r: r["parts"][0]["items"].update(task=[""] * 40),
    "fewer tasks": lambda r: r["parts"][0]["items"]["task"].pop(),
    "other number of tasks": lambda r: r["parts"][0]["items"].update(task=["x"] * 40),
    "item twice": lambda r: r["parts"][0]["items"]["item"].__setitem__(0, "item-1"),
    "item no text": lambda r: r["parts"][0]["items"]["item"].__setitem__(0, 5),
    "one item less": lambda r: [column.pop() for column in r["parts"][0]["items"].values()],
    "no models": lambda r: r["parts"][0]["models"].update(model=[]),
    "model twice": lambda r: r["parts"][0]["models"].update(model=["a"] * 12),
    "one model more": lambda r: r["parts"][0]["models"]["model"].append("b"),
    "no method": lambda r: r["parts"][0]["provenance"].pop("method"),
    "unknown method": lambda r: r["parts"][0]["provenance"].update(method="no-such"),
    "other budget": lambda r: r["parts"][0]["provenance"].update(budget=9),
    "budget in words": lambda r: r["parts"][0]["provenance"].update(budget="many"),
    "no fingerprint": lambda r: r["parts"][0]["provenance"].pop("fingerprint"),
    "no subset": lambda r: r["parts"][0].update(subset=None),
    "subset of others": lambda r: r["parts"][0]["subset"]["items"].__setitem__(0, "item-x"),
    "subset is short": lambda r: r["parts"][0]["subset"]["items"].pop(),
    "subset is a text": lambda r: r["parts"][0].update(subset={"items": "item-1"}),
    "no array kept": lambda r: r["parts"][0]["arrays"].pop("kept"),
    "no array right": lambda r: r["parts"][0]["arrays"].pop("right"),
    "no array full": lambda r: r["parts"][0]["arrays"].pop("full"),
    "no array of units": lambda r: r["parts"][0]["arrays"].pop("errors/units"),
    "array elsewhere": lambda r: r["parts"][0]["arrays"]["kept"].update(file="../../etc/passwd"),
    "description as array": lambda r: r["parts"][0]["arrays"]["kept"].update(file="pack.json"),
    "learned of no kind": lambda r: r["parts"][0]["arrays"].update(
        {"learned/secret": r["parts"][0]["arrays"]["kept"]}
    ),
}
ARRAYS = {
    "a pickled object": lambda of: ("full", npy(np.array([{"a": 1}], dtype=object))),
    "structured": lambda of: ("full", npy(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]))),
    "text": lambda of: ("full", npy(np.array(["a"] * 12))),
    "Fortran order": lambda of: ("tasks", npy(np.asfortranarray(of["tasks"]))),
    "an absurd shape": lambda of: ("full", header((10**9, 10**9)) + b"\0" * 8),
    "a negative shape": lambda of: ("full", header((-1,)) + b"\0" * 8),
    "no header": lambda of: ("full", b"not an array"),
    "a version to come": lambda of: ("full", b"\x93NUMPY\x09\x00" + npy(of["full"])[8:]),
    "NaN": lambda of: ("full", npy(np.where(of["full"] > 0.5, np.nan, of["full"]))),
    "infinite": lambda of: ("tasks", npy(of["tasks"] + np.inf)),
    "scores above 1": lambda of: ("full", npy(of["full"] + 1)),
    "fewer models": lambda of: ("full", npy(of["full"][1:])),
    "more tasks": lambda of: ("tasks", npy(np.hstack([of["tasks"]] * 2))),
    "an item out of range": lambda of: ("kept", npy(of["kept"] + 40)),
    "an item before the first": lambda of: ("kept", npy(of["kept"] - 40)),
    "an item twice": lambda of: ("kept", npy(of["kept"] * 0)),
    "other items": lambda of: ("kept", npy((of["kept"] + 1) % 40)),
    "no items": lambda of: ("kept", npy(of["kept"][:0])),
    "fewer answers": lambda of: ("right", npy(of["right"][:-1])),
    "answers as numbers": lambda of: ("right", npy(of["right"] / 1.0)),
    "errors of another shape": lambda of: ("errors/errors", npy(of["errors/errors"][1:])),
    "errors of NaN": lambda of: ("errors/errors", npy(of["errors/errors"] * np.nan)),
    "negative units": lambda of: ("errors/units", npy(-2 - of["errors/units"])),
    "a group too few": lambda of: ("errors/groups", npy(of["errors/groups"][1:])),
    "groups in halves": lambda of: ("errors/groups", npy(of["errors/groups"] / 2)),
    "reliability of many": lambda of: ("learned/reliability", npy(np.zeros(3))),
    "an item's difficulty too many": lambda of: (
        "learned/item response None 2pl intercept",
        npy(np.zeros(41)),
    ),
}


def broken(members, sound):
    """Malformed files by name."""
    arrays = arrays_of(members)
    assert {"errors/units", "learned/item response None 2pl intercept"} <= set(arrays)
    for name, change in DESCRIPTIONS.items():
        yield name, zipped(described(members, change))
    for name, change in ARRAYS.items():
        yield name, with_array(members, *change(arrays))
    yield "empty", b""
    yield "not a zip", b"<html>404</html>"
    yield "a pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for share in (0.1, 0.5, 0.9, 0.999):
        yield f"cut at {share}", sound[: int(share * len(sound))]
    at = sound.index(b"pack.json") + 200
    yield "a byte changed", sound[:at] + bytes([sound[at] ^ 255]) + sound[at + 1 :]
    yield "another description", zipped({**members, "pack.json": b"{}"})
    yield "no description", zipped({k: v for k, v in members.items() if k != "pack.json"})
    yield "no checksum", zipped({k: v for k, v in members.items() if k != "checksum"})
    yield (
        "no JSON",
        zipped(members | {"pack.json": b"{", "checksum": hashlib.sha256(b"{").hexdigest()}),
    )
    yield "a file too few", zipped({k: v for k, v in members.items() if k != "0/2.npy"})
    yield "an array changed", zipped(members | {"0/0.npy": members["0/1.npy"]})
    yield "too many files", zipped(members | {f"9/{at}": b"" for at in range(MEMBERS)})
    yield "a zip bomb", zipped(members | {"0/0.npy": bytes(LARGEST + 1)})


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_malformed_packs_are_answered_by_our_own_error(members, tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.scores.pack_files.MOST_MEMBERS", MEMBERS)
    monkeypatch.setattr("fewbench.scores.pack_files.MOST_FILE", LARGEST)
    files, sound = members
    path = tmp_path / "a.few"
    path.write_bytes(sound)
    assert fewbench.open_pack(path).start().ask()
    made = [*broken(files, sound), ("a name twice", zipped(files, [("checksum", b"x")]))]
    assert len(made) >= 60
    wrong = {}
    for name, data in made:
        path.write_bytes(data)
        if name in ("a zip bomb", "an absurd shape"):
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
