# Everything from nothing but Python 3.11 with venv: each target makes the environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: run demo test lint types man dist pythons kill together fuzz mutate clean

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

# Read one with: man -l build/man/poca.1
man: $(VENV)/ready
	$(BIN)/python docs/man/pages.py build/man

# A wheel and a source distribution, built from nothing as those who install them do, and checked as indexes do.
dist: $(VENV)/ready
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# Installs poca and runs the unit tests with each other Python, 3.11 or later, that is found.
pythons: $(VENV)/ready
	.ci/pythons $(BIN)/python

kill: ROUNDS = 200
kill: $(VENV)/ready
	$(BIN)/python -m tests.kill --rounds $(ROUNDS)

together: ROUNDS = 25
together: $(VENV)/ready
	$(BIN)/python -m tests.together --rounds $(ROUNDS)

fuzz: FEEDS = 200000
fuzz: $(VENV)/ready
	$(BIN)/python -m tests.fuzz --feeds $(FEEDS)

mutate: MUTANTS = 200
mutate: $(VENV)/ready
	$(BIN)/python -m tests.mutate --mutants $(MUTANTS)

$(VENV)/installed: setup.cfg setup.py pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/ready: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[test,release]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
