"""compare on Dask and Ray: the same numbers, whatever happens to workers; the cache goes along."""

import logging
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from fewbench.errors import ClusterError, MissingExtraError
from fewbench.executors import Lost, open_pool
from fewbench.executors.calls import Parcel, call, packed_call
from fewbench.executors.dask import DaskPool
from fewbench.scores import Scores
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.study import compare
from fewbench.testing import simulate

TABLE = simulate(24, 60, seed=2)
GRID = (["greedy-ridge"], [5])
HOW = {"repeats": 3, "level": None}
DEATHS = 2  # fewer than fewbench's own limit: each costs a new worker


def calls():
    """A function whose third item kills its worker once, and whose fifth always does."""

    def double(folder, item):  # within a function, so that it reaches other processes
        flag = os.path.join(folder, "killed")
        if item == 5 or (item == 3 and not os.path.exists(flag)):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * item

    return double


def test_workers_of_this_machine_end_with_a_killed_parent(tmp_path):
    code = (
        "import os, sys, time\n"
        "from fewbench.executors.local import Processes\n"
        "def busy(folder, item):\n"
        "    open(os.path.join(folder, str(os.getpid())), 'w').close()\n"
        "    while True: sum(range(10000))\n"
        "list(Processes(2).each(busy, sys.argv[1], [1, 2]))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        while len(os.listdir(tmp_path)) < 2:
            time.sleep(0.05)
        parent.kill()
    left, end = {int(name) for name in os.listdir(tmp_path)}, time.monotonic() + 120
    while left and time.monotonic() < end:
        time.sleep(0.1)
        for worker in list(left):
            with suppress(ProcessLookupError):
                os.kill(worker, 0)
                continue
            left.discard(worker)
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


@pytest.fixture(scope="module")
def alone():
    return compare(TABLE, *GRID, **HOW)


def same(assert_same, one, other):
    assert_same(one, other)
    assert one.repeats["mae"].tolist() == other.repeats["mae"].tolist()


def survives(pool, folder):
    """One call ends its worker once and then succeeds, one always does; all others are made."""
    found = dict(pool.each(calls(), str(folder), range(8)))
    lost = found.pop(5)
    assert isinstance(lost, Lost)
    assert re.search(r"ended each (of the \d times|time) that it ran", lost.reason)
    assert found == {item: 2 * item for item in range(8) if item != 5}


def refuses(pool, monkeypatch):
    """A call that cannot be sent, or not unpacked there, is an error in our words, at once."""
    with pytest.raises(ClusterError, match=r"cannot be sent to workers .*lock"):
        list(pool.each(pow, 2, [threading.Lock()]))
    here = types.ModuleType("only_here")
    here.Item = type("Item", (), {"__module__": "only_here"})
    monkeypatch.setitem(sys.modules, "only_here", here)
    with pytest.raises(ClusterError, match="'only_here'") as raised:
        list(pool.each(pow, 2, [here.Item()]))
    assert "the same packages on all workers" in raised.value.hint


@pytest.fixture(scope="class")
def pool(request):
    """Two workers of the library that the class of tests names."""
    pytest.importorskip(request.cls.library)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fewbench.executors.calls.MOST_DEATHS", DEATHS)
        with open_pool(request.cls.where, 2) as pool:
            yield pool


class TestDask:
    library, where = "distributed", "dask-local"

    def test_a_client_of_ones_own_stays_open(self, pool):
        with open_pool(pool.client) as other:
            assert isinstance(other, DaskPool)
            assert dict(other.each(pow, 2, [3])) == {0: 8}
        assert pool.client.status == "running"
        with (
            pytest.raises(ClusterError, match="a LocalCluster of Dask"),
            open_pool(pool.client.cluster),
        ):
            pass

    def test_the_same_numbers_though_a_worker_is_killed(
        self, pool, alone, assert_same, monkeypatch
    ):
        """The scores travel once, not with each cell."""
        pids, killed, packed = list(pool.client.run(os.getpid).values()), [], []
        real = Parcel.in_bytes
        monkeypatch.setattr(Parcel, "in_bytes", lambda one: packed.append(one) or real(one))

        def kill(done, total):
            if done == 2 and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        found = compare(TABLE, *GRID, **HOW, executor=pool, progress=kill)
        assert killed
        assert [type(one) for one in packed] == [Scores]
        same(assert_same, alone, found)

    def test_a_call_that_ends_its_worker_is_given_up_alone(self, pool, tmp_path, monkeypatch):
        refuses(pool, monkeypatch)
        survives(pool, tmp_path)

    def test_what_calls_share_is_not_in_the_task_graph(self, pool, monkeypatch):
        """The scheduler would unpack, keep and send it anew for every worker."""
        monkeypatch.setattr("fewbench.executors.dask._quiet", nullcontext)
        noise = np.random.default_rng(0).bytes(1 << 20)
        limit = {"distributed.admin.large-graph-warning-threshold": "64kB"}
        with import_module("dask").config.set(limit), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = list(pool.each(lambda shared, item: shared[item], noise, [9]))
        assert found == [(0, noise[9])]

    def test_the_only_worker_is_killed_with_what_calls_share(self, tmp_path, monkeypatch):
        pytest.importorskip("distributed")
        monkeypatch.setattr("fewbench.executors.calls.MOST_DEATHS", DEATHS)
        with open_pool("dask-local") as alone:
            survives(alone, tmp_path)


def test_workers_that_cannot_make_calls_are_named_at_once():
    """All of them, before the table is sent."""
    distributed = pytest.importorskip("distributed")
    spoil = """
def dask_setup(worker):
    import sys
    from fewbench.executors import calls
    if worker.name == 1:
        calls.__version__ = "0.0"
    if worker.name == 2:
        for name in [name for name in sys.modules if name.partition(".")[0] == "fewbench"]:
            del sys.modules[name]
        sys.modules["fewbench"] = None
"""
    how = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None}
    with (
        import_module("dask").config.set({"distributed.worker.preload": [spoil]}),
        distributed.LocalCluster(**how, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        open_pool(client) as pool,
    ):
        at = [re.escape(cluster.workers[name].worker_address) for name in range(3)]
        with pytest.raises(ClusterError) as raised:
            list(pool.each(pow, 2, [3]))
    assert re.search(rf"{at[1]}: fewbench 0\.0, not \d", raised.value.message)
    assert re.search(rf"{at[2]}: .*\bfewbench\b", raised.value.message)
    assert not re.search(at[0], raised.value.message)
    assert "2 of 3 cannot" in raised.value.message


@contextmanager
def cluster_elsewhere():
    """Scheduler and worker in another process: yield the address and the process."""
    program = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    how = {"n_workers": 1, "processes": False, "dashboard_address": None, "protocol": "tcp"}
    with LocalCluster(**how) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process.stdout.readline().strip().removeprefix("tcp://"), process
    finally:
        process.kill()
        process.communicate()


def test_a_connection_lost_between_calls_and_results_is_named():
    comm = pytest.importorskip("distributed.comm")

    def lose(shared, item):
        raise comm.CommClosedError("in <TCP (closed)>: Stream is closed")

    with (
        open_pool("dask-local") as pool,
        pytest.raises(ClusterError, check=lambda error: error.kind == "unreachable"),
    ):
        list(pool.each(lose, 2, [3]))


def test_a_lost_scheduler_is_a_clear_stop(tmp_path, assert_same, alone, caplog, monkeypatch):
    """Finished cells are kept, and the same command goes on from them. Dask's logs stay silent."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [caplog.handler])
    cache = tmp_path / "cells"
    with cluster_elsewhere() as (place, process):

        def lose(done, total):
            if done == 4:
                process.kill()

        with pytest.raises(ClusterError, match="9 results"):
            compare(
                *(TABLE, *GRID), **HOW, executor=f"dask://{place}", cache=f"{cache}/", progress=lose
            )
    assert not caplog.text
    assert logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)
    seen = []
    found = compare(TABLE, *GRID, **HOW, cache=cache, progress=lambda *at: seen.append(at[0]))
    assert seen[0] >= 4
    same(assert_same, alone, found)


class TestRay:
    library, where = "ray", "ray-local"

    def test_the_same_numbers(self, pool, alone, assert_same):
        same(assert_same, alone, compare(TABLE, *GRID, **HOW, executor=pool))

    def test_a_call_that_ends_its_worker_is_given_up_alone(self, pool, tmp_path, monkeypatch):
        refuses(pool, monkeypatch)
        survives(pool, tmp_path)


def test_processes_survive_too(tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.executors.calls.MOST_DEATHS", DEATHS)
    with open_pool(workers=2) as pool:
        refuses(pool, monkeypatch)
        survives(pool, tmp_path)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("spark://host:1", "unknown executor 'spark://host:1'"),
        (-1, "-1 workers are too few"),
        ("dask://10.0.0.1", "dask://10.0.0.1 is not an address"),
        ("dask://127.0.0.1:PORT", "nothing answers there"),
        ("ray://127.0.0.1:PORT", "nothing answers there"),
    ],
)
def test_a_wrong_place_is_named_at_once(where, reason):
    if str(where).endswith("PORT"):
        pytest.importorskip("distributed" if where[0] == "d" else "ray")
    started = time.monotonic()
    with socket.socket() as silent:  # it has the port, and does not listen
        silent.bind(("127.0.0.1", 0))
        place = where if where == -1 else where.replace("PORT", str(silent.getsockname()[1]))
        with pytest.raises(ClusterError, match=re.escape(reason)) as raised, open_pool(place):
            pass
    assert str(place) in raised.value.message
    assert raised.value.hint
    assert time.monotonic() - started < 25  # Dask gives up after 30


def test_a_lacking_library_is_named(monkeypatch):
    for where, library in (("dask-local", "distributed"), ("ray://host:1", "ray")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=library), open_pool(where):
            pass


def test_workers_with_other_code_are_refused(monkeypatch):
    """They would return other numbers."""
    parcel = Parcel.in_bytes({"a": 1})
    assert call(parcel, packed_call(lambda shared, key: shared[key], "a")) == 1
    other = replace(parcel, token="other", made_by=parcel.made_by | {"numpy": "1.0"})
    with pytest.raises(ClusterError, match=r"numpy .*, not 1\.0"):
        call(other, packed_call(len, None))


def test_an_executor_of_ones_own(alone, assert_same):
    with ThreadPoolExecutor(2) as threads:
        same(assert_same, alone, compare(TABLE, *GRID, **HOW, executor=threads))
        assert threads.submit(int).result() == 0


def test_a_mapped_file_travels_as_its_name(tmp_path):
    path = tmp_path / "p.npy"
    np.save(path, np.full((2, 3000, 2), 0.5))
    options = OptionProbabilities(np.load(path, mmap_mode="r")).take(models=[1])
    state = pickle.dumps(options)
    assert len(state) < 2000
    assert pickle.loads(state).digest() == options.digest()
