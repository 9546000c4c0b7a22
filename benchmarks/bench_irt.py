"""Time and memory of the 2PL model against limits, and beside py-irt's and girth's.

    python benchmarks/bench_irt.py [--epochs 2000] [--items 500]

Simulated answers of 400 models to 14,042 items (the size of MMLU), from five abilities. Ours is
fitted to all of them; py-irt's multidim_2pl, if it is installed, to the first 500 items (--items)
for as many epochs as are its default, and its time is scaled by the number of cells to the whole
table, as its work in an epoch is linear in them. A tenth of the cells of the slice is held out
from both, to compare what they predict there, so that speed is not bought with accuracy. Seconds
are of the processor, on one thread, of the fit alone (not of reading, nor of imports); memory is
the highest of the whole process. Each fit has a process of its own. py-irt 0.7.1 is not a
development dependency: it needs torch (several GB, with CUDA) and older releases of rich and typer.

With one ability, girth's twopl_mml fits as many items of a table of one ability, and both must find
the same difficulties there (correlation above .99). A whole estimate by gp-irt-anchor with its
interval, on all items, is against a limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fewbench_papers.algorithms.irt import fit_irt
from whole_estimate import peak, show

FloatArray = np.ndarray

MODELS, ITEMS, ABILITIES = 400, 14042, 5
MOST_MEMORY, LEAST_RATIO = 1.0, 20.0
EPOCHS = 2000
RATE = 0.02  # of py-irt; at its default of 0.1, and at 0.05, it ended in NaN on this table
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HOW = (
    "py-irt is not installed. Its pins of rich and typer exclude ours, so that it needs to be\n"
    "  installed without them: pip install torch pyro-ppl ordered-set toml; "
    "pip install --no-deps py-irt"
)


def simulated(n_items: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Chances of being right and 0/1 answers; discriminations are positive, as py-irt has them."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(MODELS, ABILITIES))
    discrimination = rng.lognormal(-0.8, 0.6, size=(n_items, ABILITIES))
    chance = 1 / (1 + np.exp(-(ability @ discrimination.T + rng.normal(size=n_items))))
    return chance, (rng.random(chance.shape) < chance).astype(float)


def held_out(shape: tuple[int, ...]) -> FloatArray:
    return np.random.default_rng(1).random(shape) < 0.1


def ours(values: FloatArray) -> tuple[FloatArray, float]:
    """Chances that our model gives, and seconds."""
    fit_irt(values[:20, :20], 2)  # so that imports are not timed
    started = time.process_time()
    model = fit_irt(values, ABILITIES)
    seconds = time.process_time() - started
    return model.expected(model.sources.means), seconds


def theirs(values: FloatArray, epochs: int) -> tuple[FloatArray, float]:
    """Chances that py-irt's model gives, and seconds."""
    import pyro
    import torch
    from py_irt.config import IrtConfig
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    pyro.set_rng_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonlines"
        with path.open("w") as file:
            for model, row in enumerate(values):
                run = np.flatnonzero(~np.isnan(row))
                told = {str(item): int(row[item]) for item in run}
                file.write(json.dumps({"subject_id": str(model), "responses": told}) + "\n")
        config = IrtConfig(model_type="multidim_2pl", dims=ABILITIES, epochs=epochs, lr=RATE)
        trainer = IrtModelTrainer(data_path=path, config=config, verbose=False)
    started = time.process_time()
    trainer.train(epochs=epochs)
    seconds = time.process_time() - started
    said = trainer.last_params
    rows = np.argsort([int(said["subject_ids"][at]) for at in range(len(values))])
    columns = np.argsort([int(said["item_ids"][at]) for at in range(values.shape[1])])
    ability = np.array(said["ability"])[rows]
    a, b = np.array(said["disc"])[columns], np.array(said["diff"])[columns]
    return 1 / (1 + np.exp(-(ability @ a.T - (a * b).sum(axis=1)))), seconds


def beside_girth(n_items: int) -> None:
    """Fit the model of one ability to a table by both; print seconds and how alike they are."""
    from girth import twopl_mml  # type: ignore[import-untyped]

    rng = np.random.default_rng(0)
    slope, difficulty = rng.lognormal(0, 0.3, n_items), rng.normal(size=n_items)
    chance = 1 / (1 + np.exp(-slope * (rng.normal(size=(MODELS, 1)) - difficulty)))
    answers = (rng.random(chance.shape) < chance).astype(float)
    fit_irt(answers[:20, :20], 1)  # so that imports are not timed
    started = time.process_time()
    model = fit_irt(answers, 1)
    middle = time.process_time()
    peer = twopl_mml(answers.T.astype(int))
    ended = time.process_time()
    own = -model.intercept / model.discrimination[:, 0]
    alike = np.corrcoef(own, peer["Difficulty"])[0, 1]
    seconds, theirs = middle - started, ended - middle
    print(
        f"2PL, one ability, {MODELS} models × {n_items} items: ours {seconds:.2f} s, girth "
        f"{theirs:.2f} s, ratio {theirs / seconds:.0f}; difficulties correlate {alike:.4f}"
    )
    assert alike > 0.99


def likelihood(chance: FloatArray, answers: FloatArray, cells: FloatArray) -> float:
    p = np.clip(chance[cells], 1e-6, 1 - 1e-6)
    y = answers[cells]
    return float((y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def fitted(who: str, n_items: int, epochs: int) -> dict[str, float]:
    """Fit in this process; the whole table has nothing held out."""
    chance, answers = simulated(n_items)
    whole = n_items == ITEMS
    held = np.zeros(answers.shape, dtype=bool) if whole else held_out(answers.shape)
    shown = np.where(held, np.nan, answers)
    said, seconds = ours(shown) if who == "ours" else theirs(shown, epochs)
    result = {"seconds": seconds, "memory": peak(), "cells": float((~held).sum())}
    if not whole:
        result["told"] = likelihood(said, answers, held)
        result["truth"] = likelihood(chance, answers, held)
        result["off"] = float(np.abs(said - chance)[held].mean())
    return result


def in_process(who: str, n_items: int, epochs: int, output: int | None = None) -> str:
    """Fit in a process of its own; return what it printed if `output` is a pipe."""
    command = [sys.executable, __file__, "--fit", who, "--items", str(n_items)]
    command += ["--epochs", str(epochs)]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(command, check=True, stdout=output, text=True, env=environment)
    return done.stdout


def in_its_own_process(who: str, n_items: int, epochs: int) -> dict[str, float]:
    printed = in_process(who, n_items, epochs, subprocess.PIPE)
    said: dict[str, float] = json.loads(printed.splitlines()[-1])
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--fit", choices=["ours", "py-irt", "girth"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit == "girth":
        beside_girth(asked.items)
        return
    if asked.fit:
        print(json.dumps(fitted(asked.fit, asked.items, asked.epochs)))
        return
    if find_spec("girth"):
        in_process("girth", min(asked.items, 200), 0)
    else:
        print("  girth is not installed: pip install girth")
    show("gp-irt-anchor", "equal", 15.0)
    print(
        f"multidimensional 2PL, {ABILITIES} abilities, {MODELS} models × {ITEMS:,} items, 1 thread"
    )
    whole = in_its_own_process("ours", ITEMS, 0)
    print(
        f"  ours   {whole['seconds']:9.1f} s   {whole['memory']:5.2f} GiB, "
        f"{whole['memory'] / MOST_MEMORY:.2f} of the limit of {MOST_MEMORY:g} GiB",
        flush=True,
    )
    if not find_spec("py_irt"):
        print("  " + HOW)
        return
    small = in_its_own_process("ours", asked.items, 0)
    peer = in_its_own_process("py-irt", asked.items, asked.epochs)
    scaled = peer["seconds"] * whole["cells"] / peer["cells"]
    print(
        f"  py-irt {scaled:9.1f} s   scaled from {peer['seconds']:.1f} s on {MODELS} × "
        f"{asked.items} ({peer['cells']:,.0f} cells, {asked.epochs} epochs, "
        f"{peer['memory']:.2f} GiB)"
    )
    ratio = scaled / whole["seconds"]
    print(f"  ratio  {ratio:9.1f}     limit: at least {LEAST_RATIO:g}")
    print(
        f"  on the slice itself: ours {small['seconds']:.2f} s, {small['memory']:.2f} GiB, ratio ",
        end="",
    )
    print(f"{peer['seconds'] / small['seconds']:.1f}")
    print(
        "  held-out tenth of the slice      log likelihood   off the true chance (mean, absolute)"
    )
    for name, said in (("ours", small), ("py-irt", peer)):
        print(f"    {name:<28}   {said['told']:14.4f}   {said['off']:20.4f}")
    print(f"    {'the true chances':<28}   {small['truth']:14.4f}")


if __name__ == "__main__":
    main()
