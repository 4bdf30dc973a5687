# Every target makes the environment that it needs; a machine with Python 3.11 or newer, pip and make is enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint test-slow bench format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS="$$(printf '\t')" read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.ready  ## the whole private path on a bundled example; writes to ./demo
	@$(BIN)/python -m discreet.doors.demo

test: lint  ## everything a change must pass: style, types, imports, and the tests that take seconds
	@$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --durations=10

lint: $(VENV)/.ready-dev  ## style, types and imports only
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

test-slow: $(VENV)/.ready-dev  ## the tests that take minutes, and properties on examples that are new every time
	@$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile=explore -n $(JOBS) --durations=10

bench: $(VENV)/.ready-dev  ## every benchmark at its quick size; writes to ./results
	@set -e; for script in benchmarks/[!_]*.py; do echo "== $$script"; $(BIN)/python "$$script" --quick; done

format: $(VENV)/.ready-dev  ## rewrite the sources in the house style
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

clean:  ## remove the environment and everything that was generated
	@rm -rf $(VENV) demo results build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "discreet needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>/dev/null || echo not there). Name another one: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing discreet into $(VENV) …"
	@$(PIP) -e .
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing discreet and its development tools into $(VENV) (a few minutes the first time) …"
	@$(PIP) -e '.[dev]'
	@touch $(VENV)/.ready $@
