# Every target makes its own .venv when there is none. Needs Python >= 3.11 and make.
PYTHON ?= python3
TABLES ?= reproduced/tables
WORKERS ?= 2
BIN := .venv/bin
TEST := pytest -n 2 --dist worksteal --ignore tests/docs -m 'not slow'
# Tests are kept compiled, even where Python is told not to: they then start 20 s sooner.
export PYTHONDONTWRITEBYTECODE =
INSTALL := $(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e

.PHONY: demo test test-slow coverage lint docs notebooks package bench reproduce zoo clean

demo: .venv/ready  ## the main job on bundled data
	$(BIN)/fewbench demo --output demo-output

test: .venv/ready-dev  ## all tests of the code but the slow ones
	$(BIN)/python -m $(TEST)

test-slow: .venv/ready-dev  ## results on real data, levels of intervals, null studies
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/docs -m slow

coverage: .venv/ready-dev  ## the tests of make test, and the share of lines and branches they reach
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(TEST)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --format total

lint: .venv/ready-dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/ready-dev  ## the documentation into site/, without a network; its code and notebooks run
	$(BIN)/python scripts/make_site.py
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/docs

notebooks: .venv/ready-dev  ## run the notebooks of the documentation anew
	$(BIN)/python scripts/run_notebooks.py

package: .venv/ready-dev  ## build wheel and sdist, and try them in an empty environment
	$(BIN)/python scripts/check_package.py

bench: .venv/ready-dev  ## speed, as ratios against peers and limits
	$(BIN)/python benchmarks/run.py

reproduce: .venv/ready-dev  ## the papers' tables: public results fetched into TABLES, figures beside the printed ones
	$(BIN)/python benchmarks/reproduce.py $(TABLES) --get --workers $(WORKERS) \
		--cache reproduced/cells -o reproduced

zoo: .venv/ready  ## make the bundled table again
	$(BIN)/python scripts/make_zoo.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/ready: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) .
	touch $@

.venv/ready-dev: .venv/ready
	$(INSTALL) '.[dev]'
	touch $@

clean:
	rm -rf .venv demo-output reproduced build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
