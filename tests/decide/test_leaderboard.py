"""A leaderboard: the models of a table in order, with what holds for all of them together."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import fewbench
from fewbench.cli import main
from fewbench.decide.simultaneous import Errors, surely_above
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.public import load_scores
from fewbench.show.page import as_text
from fewbench.testing import simulate

pytestmark = pytest.mark.filterwarnings("ignore::fewbench.errors.EstimateWarning")
DATA = Path(__file__).parents[3] / "shared" / "data"
LEVEL = 0.9


def with_holes(scores, share, seed=0):
    """Return the same table without a share of its cells, drawn at random."""
    cells = scores.values.copy()
    cells[np.random.default_rng(seed).random(cells.shape) < share] = np.nan
    tasks = list(scores.items["task"])
    return fewbench.from_arrays(cells, models=scores.model_ids, tasks=tasks)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("fixed_items", [False, True])
def test_rank_says_of_a_pair_what_versus_says(average, fixed_items):
    whole = simulate(8, 90, 3, seed=2)
    verdicts = set()
    for table in (whole.averaged(average), with_holes(whole, 0.2).averaged(average)):
        for a, b in itertools.combinations(table.model_ids[:4], 2):
            pair = fewbench.versus(a, b, scores=table, fixed_items=fixed_items)
            places = fewbench.rank(table, models=[a, b], fixed_items=fixed_items).targets
            scores = {place.target: place.score for place in places}
            assert pair.difference == pytest.approx(scores[a] - scores[b])
            assert (pair.verdict == "undecided") == bool(places[0].tied_with)
            if pair.verdict != "undecided":
                assert (pair.verdict == "better") == (places[0].target == a)
            verdicts.add(pair.verdict)
    assert len(verdicts) > 1


def test_a_model_with_errors_in_place_of_scores_is_named():
    cells = simulate(8, 200, seed=0).values.copy()
    said = {}
    for kind in ("scores", "errors"):
        table = fewbench.from_arrays(cells, models=list("abcdefgh"))
        said[kind] = [text for text in fewbench.rank(table).warnings if "tend" in text]
        cells[2] = 1 - cells[2]
    assert said["scores"] == []
    assert "1 model tends to be right where the others are wrong: c." in said["errors"][0]


def test_equal_models_are_told_apart_as_rarely_as_stated():
    rng, n, apart = np.random.default_rng(0), 60, 0
    for _ in range(n):
        chances = rng.beta(0.3, 0.3, 60)
        cells = (rng.random((5, 60)) < chances).astype(float)
        table = fewbench.from_arrays(cells, models=list("abcde"))
        places = fewbench.rank(table).targets
        apart += any(place.rank_low > 1 for place in places)
        assert [place.may_be_best for place in places] == [place.rank_low == 1 for place in places]
    error = np.sqrt(LEVEL * (1 - LEVEL) / n)
    assert apart / n <= 1 - LEVEL + 2 * error
    # Of exactly these items, unequal scores are always told apart.
    assert fewbench.rank(table, fixed_items=True).targets[0].rank_high < 5


def test_missing_cells_widen_differences_as_much_as_they_hide():
    """Differences on exactly these items, from the cells that are left, cover the true ones."""
    whole = simulate(6, 200, seed=3)
    full, covered, widths = whole.full_scores(), [], []
    for seed in range(12):
        table = with_holes(whole, 0.15, seed)
        for i, j in itertools.combinations(range(4), 2):
            a, b = whole.model_ids[i], whole.model_ids[j]
            found = fewbench.versus(a, b, scores=table, fixed_items=True, warn=False)
            covered.append(found.interval.low <= full[i] - full[j] <= found.interval.high)
            widths.append(found.interval.high - found.interval.low)
    assert 0.85 <= np.mean(covered) <= 0.99
    assert 0 < np.mean(widths) < 0.15
    found = fewbench.rank(with_holes(whole, 0.15))
    assert "6 models lack up to" in found.warnings[0]


def test_models_that_ran_little_are_left_out_with_a_warning():
    cells = simulate(5, 40, 2, seed=1).values.copy()
    cells[0, 5:], cells[1, 22:] = np.nan, np.nan
    table = fewbench.from_arrays(cells, models=list("abcde"), tasks=["x"] * 20 + ["y"] * 20)
    found = fewbench.rank(table, tasks=True)
    assert {place.target for place in found.targets} == set("bcde")
    assert any("a (5 of 40 items)" in warning for warning in found.warnings)
    of_tasks = {task.task: {place.target for place in task.targets} for task in found.tasks}
    assert of_tasks == {"x": set("bcde"), "y": set("cde")}
    assert any(warning.startswith("y: without b") for warning in found.warnings)
    frame = found.to_frame()
    assert list(frame.index.names) == ["task", "target"]
    assert len(frame) == 4 + 4 + 3
    assert frame.loc[("x", "c"), "score"] == pytest.approx(cells[2, :20].mean())


def test_of_two_models_the_bound_is_that_of_one_test():
    two = Errors.from_matrix(np.array([[0, 0.1], [0.1, 0]]))
    reach = np.full(10, two.inverse[0, 1] * np.sqrt(two.covariance[0, 0] * 4))
    assert two.quantile(reach, LEVEL) == pytest.approx(1.6448536, abs=1e-6)


def test_pairs_that_are_told_apart_leave_the_others_more_room():
    """Three models: two far below the third. Their own difference is then judged by itself."""
    errors = 0.01 * (1 - np.eye(3))

    def above(third):
        scores = np.array([third, 0.518, 0.5])
        z = np.abs(scores[:, None] - scores) / 0.01
        from scipy.special import ndtr

        return surely_above(scores, errors, 2 * ndtr(-z), LEVEL)[1, 2]

    assert above(0.9)
    assert not above(0.51)


def test_a_result_is_the_same_whatever_the_order_of_its_models():
    table = simulate(9, 80, seed=4)
    found = fewbench.rank(table)
    turned = fewbench.rank(table.take(models=np.arange(9)[::-1]))
    assert found == turned


def test_options_of_evaluations_are_refused_for_a_table(tmp_path):
    table = simulate(6, 40, seed=1)
    evaluation = Evaluation(table, "random", 20, ["new"])
    wrong = {
        "2 tables of scores": lambda: fewbench.rank(table, table, evaluation),
        "no further items": lambda: fewbench.rank(table, next_items=5),
        "top = 6 is not possible": lambda: fewbench.rank(table, top=6),
        "not in the scores": lambda: fewbench.rank(table, models=["model-00", "x"]),
        "ranking needs two models": lambda: fewbench.rank(table, models=["model-00"]),
    }
    for text, call in wrong.items():
        with pytest.raises(FewbenchError, match=text):
            call()


def test_the_command_ranks_a_scores_file(tmp_path, capsys, monkeypatch):
    table = simulate(50, 60, 2, seed=3)
    path, page = str(fewbench.save_scores(table, tmp_path / "s.parquet")), tmp_path / "page.md"

    def run(*words):
        monkeypatch.setattr("sys.argv", ["fewbench", "rank", *words])
        with pytest.raises(SystemExit) as done:
            main()
        return done.value.code, capsys.readouterr()

    as_json = json.loads(run(path, "--average", "macro", "--tasks", "--json")[1].out)
    found = fewbench.rank(table.averaged("macro"), tasks=True)
    assert as_json == json.loads(found.to_json())
    text = run(path, "--report", str(page))[1].out
    assert "… and 10 more rows" in text
    assert "History" not in text
    assert page.read_text().count("| model-") == 50  # a file has all rows


def test_the_page_names_the_models_that_may_be_the_best():
    found = fewbench.rank(simulate(30, 100, 3, seed=6), tasks=True)
    assert len(found.contenders) > 1
    page = found.page()
    text = as_text(page)
    assert f"{len(found.contenders)} models may be the best" in text
    assert "In general, on questions like these and if run again" in text
    rows = next(section for section in page.sections if section.id == "places").tables[0].rows
    assert sum("yes" in row for row in rows) == len(found.contenders)
    assert [len(of.rows) for of in page.sections[-1].tables] == [3]  # a row for each task
    fixed = fewbench.rank(simulate(30, 100, 3, seed=6), fixed_items=True)
    assert "On exactly these items" in as_text(fixed.page())


@pytest.mark.parametrize(("name", "tied"), [("helm_math", 5), ("gsm8k_150", 9)])
def test_real_leaderboards(name, tied):
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs the table {name}.npz in ../shared/data, which is not there")
    found = fewbench.rank(load_scores(path))
    assert len(found.targets[0].tied_with) == tied
    assert len(found.contenders) == 1 + tied


def test_a_missing_task_is_predicted_with_the_error_that_hiding_it_shows():
    """Models differ by task, so the others say little of it; with few models less still."""
    rng, tasks = np.random.default_rng(0), np.repeat(["a", "b", "c"], 60)
    widths = {}
    for n_models in (30, 8):
        ability = rng.normal(0, 1, (n_models, 1)) + np.repeat(
            rng.normal(0, 0.5, (n_models, 3)), 60, axis=1
        )
        chances = 1 / (1 + np.exp(rng.normal(0, 1, 180) - ability))
        cells = (rng.random(chances.shape) < chances).astype(float)
        names, covered, widths[n_models] = [f"m{at}" for at in range(n_models)], [], []
        for row in range(n_models):
            hidden = cells.copy()
            hidden[row, tasks == "c"] = np.nan
            table = fewbench.from_arrays(hidden, models=names, tasks=list(tasks))
            (place,) = (
                place
                for place in fewbench.rank(table, fixed_items=True).targets
                if place.target == names[row]
            )
            truth, ends = cells[row].mean(), place.interval
            covered.append(ends.low <= truth <= ends.high)
            widths[n_models].append(ends.high - ends.low)
        assert np.mean(covered) >= 0.8
    assert 0.08 < np.mean(widths[30]) < np.mean(widths[8])
    pair = fewbench.versus(names[-1], names[0], scores=table, fixed_items=True, warn=False)
    places = fewbench.rank(table, models=[names[-1], names[0]], fixed_items=True).targets
    assert (pair.verdict == "undecided") == bool(places[0].tied_with)
