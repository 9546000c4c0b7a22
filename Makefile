# Every target makes its own .venv when there is none. Needs Python >= 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test lint bench zoo clean

demo: $(READY)  ## the main job on bundled data
	$(BIN)/fewbench demo --output demo-output

test: $(READY)  ## all tests, the slow ones too
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed and accuracy against peers, as ratios
	$(BIN)/python benchmarks/run.py

zoo: $(READY)  ## make the bundled table again
	$(BIN)/python scripts/make_zoo.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv demo-output build .pytest_cache .mypy_cache .ruff_cache .hypothesis
