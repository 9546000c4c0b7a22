"""The bundled zoo, the benchmark that it took, and the newcomer that takes it on the spot."""

import importlib.util
import sys
import zlib
from datetime import date
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fewbench.datasets.digits import (
    TASKS,
    Newcomer,
    benchmark,
    distort,
    train_newcomer,
    training_images,
)

ZOO = Path(str(files("fewbench.datasets"))) / "zoo.npz"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_zoo.py"

Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def zoo() -> Arrays:
    with np.load(ZOO, allow_pickle=False) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def newcomer() -> Newcomer:
    return train_newcomer(seed=0)


# The benchmark


def test_benchmark_has_200_items_of_each_task() -> None:
    bench = benchmark()
    assert bench.images.shape == (1000, 64)
    assert len(set(bench.item_ids)) == len(bench.item_ids) == len(bench.gold) == 1000
    assert [bench.tasks.count(task) for task in TASKS] == [200] * 5
    assert bench.images.min() >= 0
    assert bench.images.max() <= 1
    assert set(bench.gold.tolist()) == set(range(10))


def test_benchmark_is_the_same_everywhere() -> None:
    # The zoo's stored answers are answers to these very images.
    levels = np.round(benchmark().images * 16).astype(np.uint8)
    assert zlib.crc32(levels.tobytes()) == 2959167610
    benchmark.cache_clear()
    assert np.array_equal(np.round(benchmark().images * 16), levels)


def test_no_benchmark_image_is_for_training() -> None:
    images, labels = training_images()
    assert images.shape == (797, 64)
    assert labels.shape == (797,)
    clean = benchmark().images[:200]
    assert not (clean[:, None] == images[None]).all(axis=2).any()


def test_shared_images_cannot_be_written_to() -> None:
    for array in (benchmark().images, benchmark().gold, *training_images()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_unknown_condition_is_named() -> None:
    with pytest.raises(ValueError, match="'blurred'"):
        distort(np.zeros(64), "blurred", np.random.default_rng(0))


# The zoo


def test_zoo_is_small_enough_for_the_package() -> None:
    assert ZOO.stat().st_size <= 3_000_000


def test_zoo_layout(zoo: Arrays) -> None:
    assert zoo["scores"].shape == (280, 1000)
    assert zoo["scores"].dtype == np.uint8
    assert set(np.unique(zoo["scores"])) == {0, 1}
    assert zoo["probabilities"].shape == (280, 1000, 10)
    assert zoo["probabilities"].dtype == np.float16
    assert zoo["n_options"].tolist() == [10] * 1000
    assert len(set(zoo["models"])) == 280


def test_zoo_took_the_benchmark_of_this_package(zoo: Arrays) -> None:
    bench = benchmark()
    assert tuple(zoo["items"]) == bench.item_ids
    assert tuple(zoo["tasks"]) == bench.tasks
    assert np.array_equal(zoo["gold"], bench.gold)


def test_zoo_probabilities_sum_to_one_and_agree_with_the_scores(zoo: Arrays) -> None:
    probabilities = zoo["probabilities"].astype(np.float32)
    assert probabilities.min() >= 0
    assert np.abs(probabilities.sum(axis=2) - 1).max() <= 1e-2
    favourites = probabilities.argmax(axis=2)
    assert np.array_equal(favourites == zoo["gold"], zoo["scores"] == 1)
    best_two = np.sort(probabilities, axis=2)[:, :, -2:]
    assert (best_two[:, :, 1] > best_two[:, :, 0]).all()  # no ties for the favourite


def test_zoo_families_have_14_models_each_in_the_order_of_their_dates(zoo: Arrays) -> None:
    families, sizes = np.unique(zoo["families"], return_counts=True)
    assert len(families) == 20
    assert set(sizes) == {14}
    dates = [date.fromisoformat(day) for day in zoo["dates"]]
    assert len(set(dates)) == 280
    for family in families:
        members = np.flatnonzero(zoo["families"] == family)
        assert [zoo["models"][m] for m in members] == [f"{family}/{k:02d}" for k in range(1, 15)]
        assert sorted(dates[m] for m in members) == [dates[m] for m in members]


def test_zoo_models_differ_in_quality_and_later_ones_tend_to_be_better(zoo: Arrays) -> None:
    quality = zoo["scores"].mean(axis=1)
    assert quality.min() < 0.35
    assert quality.max() > 0.8
    by_date = quality[np.argsort(zoo["dates"])]
    assert 0.4 < np.corrcoef(by_date, np.arange(280))[0, 1] < 0.9


def test_zoo_siblings_resemble_one_another_but_are_not_copies(zoo: Arrays) -> None:
    assert len(np.unique(zoo["scores"], axis=0)) == 280
    agreement = np.corrcoef(zoo["scores"])
    siblings = zoo["families"][:, None] == zoo["families"]
    others = ~np.eye(280, dtype=bool)
    assert agreement[siblings & others].mean() > agreement[~siblings].mean() + 0.1


# The newcomer


class Recorder:
    """A classifier that guesses 3 and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[NDArray[np.float64]] = []

    def predict_proba(self, images: NDArray[np.float64], /) -> NDArray[np.float64]:
        self.shown.append(images)
        return np.tile(np.eye(10)[3], (len(images), 1))


def test_newcomer_is_shown_only_what_is_asked() -> None:
    recorder, bench = Recorder(), benchmark()
    scores, _ = Newcomer(recorder).answer([bench.item_ids[700], bench.item_ids[2]])
    assert np.array_equal(np.vstack(recorder.shown), bench.images[[700, 2]])
    assert scores.tolist() == [bench.gold[700] == 3, bench.gold[2] == 3]


def test_newcomer_answers_alike_however_it_is_asked(newcomer: Newcomer) -> None:
    bench = benchmark()
    scores, probabilities = newcomer.answer(bench.item_ids)
    asked = [3, 999, 417]
    few_scores, few = newcomer.answer([bench.item_ids[k] for k in asked])
    assert np.array_equal(few_scores, scores[asked])
    assert np.allclose(few, probabilities[asked])
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert newcomer.full_score() == scores.mean()


def test_newcomer_is_decent_and_follows_from_its_seed(newcomer: Newcomer) -> None:
    assert 0.7 < newcomer.full_score() < 0.85
    ids = benchmark().item_ids
    again, other = train_newcomer(seed=0), train_newcomer(seed=1)
    assert np.array_equal(again.answer(ids)[0], newcomer.answer(ids)[0])
    assert not np.array_equal(other.answer(ids)[0], newcomer.answer(ids)[0])


def test_newcomer_asked_for_nothing_answers_nothing() -> None:
    scores, probabilities = Newcomer(Recorder()).answer([])
    assert scores.shape == (0,)
    assert probabilities.shape == (0, 10)


def test_newcomer_names_an_item_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="'rotated-200'"):
        Newcomer(Recorder()).answer(["clean-000", "rotated-200"])


# The script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_zoo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_zoo"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_grid_keeps_the_favourite_where_rounding_would_tie(script: ModuleType) -> None:
    nearly_tied = np.full((1, 10), 0.1)
    nearly_tied[0, 4] += 1e-6
    rounded = script.on_grid(np.vstack([nearly_tied, np.full((1, 10), 0.1), np.eye(10)[[7]]]))
    assert rounded.argmax(axis=1).tolist() == [4, 0, 7]
    assert (np.sort(rounded, axis=1)[:, -1] > np.sort(rounded, axis=1)[:, -2]).all()
    assert rounded.sum(axis=1).tolist() == [1, 1, 1]


def test_script_plans_the_models_of_the_file(script: ModuleType, zoo: Arrays) -> None:
    recipes = script.recipes()
    assert [recipe.name for recipe in recipes] == zoo["models"].tolist()
    assert [recipe.family for recipe in recipes] == zoo["families"].tolist()
    assert [recipe.date for recipe in recipes] == zoo["dates"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes-bits/09", "forest/05", "neighbours-small/14"])
def test_script_trains_the_stored_models_again(script: ModuleType, zoo: Arrays, name: str) -> None:
    import sklearn

    if sklearn.__version__ != script.MADE_WITH:
        pytest.skip(f"the file was made with scikit-learn {script.MADE_WITH}")
    row = zoo["models"].tolist().index(name)
    probabilities = script.train(script.recipes()[row])
    assert np.array_equal(probabilities, zoo["probabilities"][row])
    assert np.array_equal(probabilities.argmax(axis=1) == zoo["gold"], zoo["scores"][row] == 1)
