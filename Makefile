# Everything from nothing but Python 3.11 with venv: each target makes the environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
ROUNDS ?= 200
FEEDS ?= 200000

.PHONY: run demo test lint types kill together fuzz clean

run: $(VENV)/installed
	$(BIN)/poca --config sample_config.yaml

demo: $(VENV)/installed
	$(BIN)/python tests/demo.py

test: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/ready
	$(BIN)/ruff check .

types: $(VENV)/ready
	$(BIN)/mypy

kill: $(VENV)/ready
	$(BIN)/python -m tests.kill --rounds $(ROUNDS)

together: $(VENV)/ready
	$(BIN)/python -m tests.together --rounds $(ROUNDS)

fuzz: $(VENV)/ready
	$(BIN)/python -m tests.fuzz --feeds $(FEEDS)

$(VENV)/installed: setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
