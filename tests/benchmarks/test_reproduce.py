"""The records of the papers: benchmarks/reproduce.py and benchmarks/papers."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench.public import load_scores
from fewbench.scores import from_arrays, save_scores
from fewbench.study import SplitSettings, compare
from fewbench.testing import simulate

HALF = "--split random --targets 0.5"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def table():
    from papers.record import HALVES, MAE, TAU, Row, Table

    return Table(
        "A table",
        "About it.",
        "scores.parquet",
        (5, 10),
        HALVES,
        3,
        (TAU, MAE),
        (Row("random-ridge", "ridge", {MAE: (1.5, float("nan"))}), Row("random")),
        against="random",
    )


@pytest.fixture
def context(tmp_path):
    from papers.record import Context

    save_scores(simulate(n_models=24, n_items=60), tmp_path / "scores.parquet")
    return Context(tmp_path)


def rows(text, heading):
    """The cells of the table below a heading, by the first two cells of a row."""
    lines = text.partition(f"| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_z_of_a_method_counts_both_standard_errors(table, context):
    for heading, sign in (("Kendall tau", 1), ("error (pp)", -1)):
        found = rows(replace(table, z="random", against=None).text(context), heading)
        values = {}
        for name, by, *cells in found:
            if by == "fewbench":
                values[name] = np.array([cell.split(" ± ") for cell in cells], float)
            elif by == "z of `random`":
                z = np.array(cells, float)
        ridge, other = values.values() if len(values) == 2 else (values[""], values["`random`"])
        expected = sign * (other[:, 0] - ridge[:, 0]) / np.hypot(other[:, 1], ridge[:, 1])
        np.testing.assert_allclose(z, expected, atol=0.3)


def test_figures_are_means_with_standard_errors_over_the_repeats(table, context):
    repeats = compare(
        load_scores(context.folder / "scores.parquet"),
        ["random-ridge", "random"],
        [5, 10],
        SplitSettings("random", 0.5),
        3,
        level=None,
    ).repeats
    wide = 100 * repeats.pivot(index="repeat", columns=["method", "budget"], values="mae")
    found = rows(table.text(context), "error (pp)")
    assert found[0] == ["`random-ridge` ridge", "paper", "1.50", "–"]
    apart = wide["random-ridge"] - wide["random"]
    for cells, values in ((found[1], wide["random-ridge"]), (found[2], apart)):
        for cell, budget in zip(cells[2:], (5, 10), strict=True):
            mean, _, error = cell.partition(" ± ")
            assert float(mean) == pytest.approx(values[budget].mean(), abs=0.0051)
            assert float(error) == pytest.approx(
                values[budget].std(ddof=1) / np.sqrt(3), abs=0.0051
            )


@pytest.mark.parametrize("metric", ["mae", "kendall_tau", "task_mae", "task_rank_mae"])
def test_differences_are_those_of_a_table_with_errors_that_count_the_models(context, metric):
    from papers.record import PERCENT, Differences

    scores = simulate(n_models=32, n_items=90, n_tasks=3)
    save_scores(scores, context.folder / "scores.parquet")
    pair, scale = ("random-ridge", "random"), 100 if metric in PERCENT else 1
    section = Differences("D", "scores.parquet", (pair,), (20,), HALF, 6, (metric,))
    cell = section.text(context).splitlines()[-1].split("|")[-2].strip()
    mean, _, error = cell.replace("*", "").partition(" ± ")
    compared = compare(scores, list(pair), 20, SplitSettings("random", 0.5), 6, level=None)
    wide = scale * compared.repeats.pivot(index="repeat", columns="method", values=metric)
    less = wide["random-ridge"] - wide["random"]
    assert float(mean) == pytest.approx(less.mean(), abs=0.0051)
    assert float(error) > 0.8 * less.sem()  # over divisions alone
    if not 1 < abs(less.mean()) / float(error) < 3:
        assert cell.startswith("**") == (abs(less.mean()) > float(error))


def test_sections_are_written_one_by_one_and_others_stay(table, context, tmp_path):
    from papers.record import Paper, Study

    study = Study("A study", (), lambda at: f"in {at.folder.name}")
    absent = Study("Absent", ("nothing.npz",), lambda _: "never")
    paper = Paper("one", "One paper", (table, study, absent))
    out = tmp_path / "out"
    lines = list(paper.write(context, out, "A study"))
    lines += paper.write(context, out, "A table")
    lines += paper.write(context, out, "Absent")
    timed = [re.fullmatch(r"one: (.+) \(\d+ s, processors \d+ s\)", line) for line in lines[:2]]
    assert [line and line[1] for line in timed] == ["A study", "A table"]
    assert lines[2].startswith("one: not run: Absent: no nothing.npz (not in the folder; ")
    page = (out / "one.md").read_text(encoding="utf-8")
    assert page.index("# One paper") < page.index("## A table") < page.index("## A study\n\nin ")
    assert "fewbench compare FOLDER/scores.parquet -m random-ridge,random -n 5,10" in page


def test_a_finished_study_is_not_run_again_until_its_data_change(context, tmp_path):
    from papers.record import Study

    made = []
    study = Study("A study", ("scores.parquet",), lambda _: made.append(1) or f"{len(made)} runs")
    kept = replace(context, cache=tmp_path / "cells")
    assert [study.text(kept), study.text(kept), len(made)] == ["1 runs", "1 runs", 1]
    save_scores(simulate(n_models=25, n_items=60), tmp_path / "scores.parquet")
    assert study.text(kept) == "2 runs"
    assert study.text(context) == "3 runs"  # without a cache


def test_finished_differences_are_not_run_again(context, tmp_path, monkeypatch):
    from papers.record import Differences

    section = Differences("D", "scores.parquet", (("random-ridge", "random"),), (10,), HALF, 3)
    kept = replace(context, cache=tmp_path / "cells")
    text = section.text(kept)
    monkeypatch.setattr("papers.record.replay", None)
    assert section.text(kept) == text


def test_the_paper_s_z_test_of_tailoredbench_holds_on_gsm8k():
    """One-sided, over seeds: better than each printed baseline at 20 to 40 items, not at 150."""
    page = (BENCHMARKS / "results/tailoredbench.md").read_text(encoding="utf-8")
    few, more = ", the paper's sources and targets", " with more items"
    z = {}
    for title in (few, more):
        text = page.partition(f"## TailoredBench on GSM8K{title}")[2]
        for heading, sign in (("Kendall tau", 1), ("error (pp)", -1)):
            figures, name = {}, ""
            for first, by, *cells in rows(text, heading):
                name = first.split("`")[1] if first else name
                if by == "fewbench":
                    figures[name] = np.array([cell.split(" ± ") for cell in cells], float)
                elif by == "z of `tailored`":
                    z[title, heading, name] = np.array(cells, float)
            best = figures["tailored"]
            for baseline in ("random", "gp-irt-random", "anchor-points-correlation"):
                other, recorded = figures[baseline], z[title, heading, baseline]
                expected = sign * (best[:, 0] - other[:, 0]) / np.hypot(best[:, 1], other[:, 1])
                np.testing.assert_allclose(recorded, expected, rtol=0.35, atol=0.8)  # rounded
                if title == few:
                    assert recorded.min() > 4
    assert z[more, "error (pp)", "gp-irt-random"][-1] < -4


def test_committed_records_have_the_sections_that_are_defined():
    from papers import PAPERS
    from papers.record import sections_of

    for paper in PAPERS.values():
        path = BENCHMARKS / f"results/{paper.name}.md"
        kept = sections_of(path.read_text(encoding="utf-8")) if path.is_file() else {}
        defined = [section.title for section in paper.sections]
        assert list(kept) == [title for title in defined if title in kept]


NOT_AT_HAND = {
    *("mmlu.parquet", "hellaswag.parquet", "winogrande.parquet", "arc.parquet"),
    *("tailored_arc.parquet", "tailored_hellaswag.parquet", "tailored_winogrande.parquet"),
    "tailored_pope.parquet",
}
"""Tables that `--get` fetches or builds, or one's own, and that were never there for the record."""


def test_the_record_lacks_only_sections_whose_tables_are_not_at_hand():
    from papers import PAPERS
    from papers.record import sections_of

    for paper in PAPERS.values():
        text = (BENCHMARKS / f"results/{paper.name}.md").read_text(encoding="utf-8")
        for section in paper.sections:
            is_absent = bool(NOT_AT_HAND.intersection(section.data))
            assert (section.title not in sections_of(text)) == is_absent, section.title


PAGES = {
    "TailoredBench": "tailoredbench",
    "Two-stage collaborative filtering": "collaborative",
    "BenTo": "bento",
    "DISCO": "disco",
}
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?|(?<![\w.])\.\d+")
PAIR = re.compile(r"(\d*\.\d+)\** ± (\d*\.\d+)")


def is_recorded(number, figures):
    """Whether a number is one of the figures, or a percentage of one, rounded."""
    digits = len(number.partition(".")[2])
    return any(
        abs(scale * figure - float(number)) < 0.5001 * 10**-digits
        for figure in figures
        for scale in (1, 100)
    )


def figures_of(text):
    """All numbers of a text, percentages also as shares."""
    found = {float(number.replace(",", "")) for number in NUMBER.findall(text)}
    return found | {float(share) / 100 for share in re.findall(r"(\d*\.?\d+) ?%", text)}


@pytest.mark.parametrize("heading", PAGES)
def test_every_number_of_a_claim_stands_in_the_record(heading):
    """Times and whole numbers too; at most four sections have all numbers of a claim."""
    from papers.record import sections_of

    claimed = (BENCHMARKS / "results/claims.md").read_text(encoding="utf-8")
    record = (BENCHMARKS / f"results/{PAGES[heading]}.md").read_text(encoding="utf-8")
    figures = {title: figures_of(text) for title, text in sections_of(record).items()}
    pairs = [tuple(map(float, pair)) for pair in PAIR.findall(record)]
    section = claimed.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    claims = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    assert len(claims) > 10
    checked = 0
    for claim, _, numbers in claims[2:]:
        own = re.sub(r"\((?:paper|printed)[^)]*\)|`[^`]*`|Eq\. [\d-]+", "", numbers)
        for value, error in PAIR.findall(own):
            assert any(
                is_recorded(value, [mean]) and is_recorded(error, [se]) for mean, se in pairs
            ), (claim, value, error)
        wanted = {number.replace(",", "") for number in NUMBER.findall(own)}
        checked += len(wanted)
        holds = {
            title: {number for number in wanted if is_recorded(number, known)}
            for title, known in figures.items()
        }
        for _ in range(4):
            wanted -= max(holds.values(), key=lambda one: len(one & wanted))
        assert not wanted, (claim, wanted)
    assert checked > 20


def test_the_list_has_every_table_and_figure_and_names_sections_of_the_record():
    from papers import PAPERS

    page = (BENCHMARKS / "results/experiments.md").read_text(encoding="utf-8")
    for heading, (tables, drawn) in NUMBERED.items():
        part = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        rows = [line.split("|")[1:-1] for line in part.splitlines() if line[:1] == "|"]
        named = "; ".join(first for first, *_ in rows)
        for word, last in (("Table", tables), ("Figure", drawn)):
            parts = re.findall(rf"{word}s? ([\d, a-e to]+)", named)
            found = {
                number
                for one in parts
                for low, high in re.findall(r"(\d+)(?: to (\d+))?", one)
                for number in range(int(low), int(high or low) + 1)
            }
            assert found == set(range(1, last + 1)), (heading, word)
        titles = [section.title for section in PAPERS[PAGES[heading]].sections]
        for *_, where in rows[2:]:
            for words in re.findall(r"`([^`]+)`", where):
                assert any(words in title for title in titles), (heading, words)


NUMBERED = {
    "TailoredBench": (17, 23),
    "Two-stage collaborative filtering": (6, 9),
    "BenTo": (11, 4),
    "DISCO": (10, 10),
}
"""How many tables and figures a paper has."""


def test_a_section_that_follows_from_others_is_made_from_them(tmp_path):
    from papers import PAPERS
    from papers.record import Context, Derived, sections_of

    for paper in PAPERS.values():
        text = (BENCHMARKS / f"results/{paper.name}.md").read_text(encoding="utf-8")
        record = sections_of(text)
        for section in paper.sections:
            if isinstance(section, Derived):
                made = section.text(Context(tmp_path, record=record))
                assert made.strip() == record[section.title].strip()
    (line,) = paper_of(Derived("Ratios", "A table", str)).write(Context(tmp_path), tmp_path)
    assert line == "one: not run: Ratios: the record has no section 'A table' yet"


def paper_of(section):
    from papers.record import Paper

    return Paper("one", "One paper", (section,))


def test_everyone_can_fetch_or_build_what_every_section_needs(tmp_path):
    from papers import PAPERS
    from papers.public import BUILT, OWN, PUBLIC, Tables

    needed = {
        file for paper in PAPERS.values() for section in paper.sections for file in section.data
    }
    for file in needed:
        assert file in BUILT or file in OWN or Path(file).stem in PUBLIC, file
    assert len(PUBLIC["tailored_winogrande"]["models"]) == 150  # those that the paper names
    tables = Tables(tmp_path)
    assert not list(tables.fetch(OWN))
    assert "99 models" in tables.reasons["tailored_pope.parquet"]


def test_every_row_of_a_table_names_a_method_by_its_own_name():
    from papers import PAPERS
    from papers.methods import find, paper_method
    from papers.record import Table

    rows = {
        row.method
        for paper in PAPERS.values()
        for section in paper.sections
        if isinstance(section, Table)
        for row in section.rows
    }
    assert all(find(row) for row in rows)
    own = {row: method for row in rows if (method := paper_method(row)) is not None}
    assert len(own) > 10
    assert all(method.describe() == row for row, method in own.items())


def test_methods_of_the_papers_enter_as_a_user_s_own(table, context):
    from papers.record import Row

    rows = (Row("tailored(ties=shared)"), Row("assessor"), *table.rows)
    text = replace(table, rows=rows).text(context)
    assert "| `tailored(ties=shared)` | fewbench | " in text
    assert "failed" not in text
    assert "-m random-ridge,random -n" in text
    assert 'reproduce.py FOLDER --only "A table"  # all rows' in text


def test_a_budget_may_be_a_share_of_the_items(table, context):
    shares = replace(table, budgets=(5, "50%"))
    text = shares.text(context)
    assert "| error (pp) | | 5 | 50% (" in text
    head = next(line for line in text.splitlines() if line.startswith("| error (pp)"))
    assert len(rows(text, head.strip("| "))[0]) == 4
    assert "-n 5,50% " in text


def test_a_temperature_changes_confidence_and_not_the_answers():
    from papers.disco import calibration, tempered

    scores = simulate(8, 60, options=4, seed=2)
    before, same, soft = (
        np.stack(list(table.probabilities.by_model()))
        for table in (scores, tempered(scores, 1.0), tempered(scores, 4.0))
    )
    np.testing.assert_allclose(same, before, atol=1e-12)
    np.testing.assert_allclose(soft.sum(axis=2), 1)
    assert (soft.argmax(axis=2) == before.argmax(axis=2)).all()
    assert ((soft > 0) == (before > 0)).all()
    confident, shy = (calibration(one)["confidence"] for one in (scores, tempered(scores, 4.0)))
    assert (shy < confident).all()


def test_the_calibration_error_is_the_gap_of_confidence_and_share_right():
    from papers.disco import calibration

    sure = np.full((1, 100, 2), [0.9, 0.1])
    right = (np.arange(100) < 65).astype(float)[None]
    table = from_arrays(right, models=["m"], probabilities=sure, n_options=np.full(100, 2))
    assert calibration(table).loc["m"].tolist() == pytest.approx([25, 90])


def test_disco_runs_the_repeats_of_a_split():
    from papers import disco

    scores = simulate(24, 120, options=3, seed=3)
    split = SplitSettings("group", sources=10)
    (runs,) = disco.run(scores, scores, ["disco-jsd-ridge"], split, 1).values()
    assert len(runs) == disco.REPEATS
    assert all(len(one.items) == disco.ITEMS for one in runs)
    known = pd.Series(scores.full_scores(), list(scores.model_ids))
    for one in runs:
        np.testing.assert_allclose(one.truth, known[one.truth.index])
    mae = np.mean([one.metric("mae") for one in runs])
    found = compare(scores, "disco-jsd-ridge", 100, SplitSettings("group"), sources=10, level=None)
    cells = found.cells.set_index(["method", "split"])["mae"]
    assert mae == pytest.approx(100 * cells["disco-jsd-ridge", "10-source group"], rel=0.2)


def tiny(folder):
    """Small tables under the names of the real ones, with the columns that the sections need."""
    from papers.public import OWN, PUBLIC

    files = {Path(f"{name}.parquet") for name in PUBLIC} | set(map(Path, OWN))
    files |= {
        Path(f"{name}.parquet")
        for name in ("llmub_mmlu", "openllm2_math_musr", "mmlu_text", "arc_153")
    }
    for file in sorted(files):
        scores = simulate(60, 120, n_tasks=4, options=4)
        texts = [f"question {at % 7} on subject {at % 11}" for at in range(scores.n_items)]
        scores = scores.changed(items=scores.items.assign(text=texts))
        roles = np.where(np.arange(60) % 2, "target", "source")
        if file.stem.startswith(("gsm8k", "tailored")):
            scores = scores.changed(models=scores.models.assign(role=roles))
        save_scores(scores, folder / file)


@pytest.mark.slow
def test_every_comparison_starts_and_makes_its_rows_on_tiny_tables(tmp_path):
    from papers import PAPERS
    from papers.record import Context, Differences, Table

    tiny(tmp_path)
    context = Context(tmp_path, cache=tmp_path / "cells")  # the tables are alike
    for paper in PAPERS.values():
        for section in paper.sections:
            if isinstance(section, Table | Differences):
                file = f"{Path(section.file).stem}.parquet"
                small = {"repeats": 2, "budgets": (20,), "file": file}
                if isinstance(section, Table):
                    rows = tuple(replace(row, reported={}) for row in section.rows)
                    small |= {"rows": rows, "every": 1}
                text = replace(section, **small).text(context)
                assert "failed" not in text, section.title
                assert "nan" not in text.lower(), section.title
