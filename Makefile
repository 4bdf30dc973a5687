# Every target makes the environment that it needs; a machine with Python 3.11 or newer, pip and make is enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
SECONDS ?= 60
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -c constraints.txt
AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js

# Hundreds of processes start here: without bytecode on disk each would compile all of discreet first, for a second.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint fuzz test-slow test-package docs wheels bench format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS="$$(printf '\t')" read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.ready  ## the whole private path on a bundled example; writes to ./demo
	@$(BIN)/python -m discreet.doors.demo

test: $(VENV)/.ready-dev $(AXE)  ## everything a change must pass: style, types, imports, and the tests that take seconds
	@$(MAKE) --no-print-directory -j2 lint test-fast

# Side by side with lint, which leaves a core idle. Each worker begins with a half of the tests in order and takes over what the other
# has not begun, so that a fixture of a file, Spark or a browser is mostly started once; linear algebra has no threads to fight over.
# Noise cannot be seeded, and a browser can be slow: an assertion that fails is looked at once more, five in a run at most, and the first
# failure is printed either way. Not so where a single failure is the finding: an accusation of privacy (SURE in tests/chance.py), a crash, a double debit.
ONCE := tests/faults tests/airlock $(addprefix tests/statistics/test_,empirical_epsilon.py posterior_epsilon.py audit.py audit_units.py)
.PHONY: test-fast
test-fast:
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal --durations=10 \
	  --reruns 1 --only-rerun AssertionError --only-rerun TimeoutError --max-suite-reruns 5 --rerun-show-tracebacks $(addprefix --rerun-exclude-path=,$(ONCE))

lint: $(VENV)/.ready-dev  ## style, types and imports only
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

test-slow: $(VENV)/.ready-dev $(AXE)  ## the tests that take minutes, and properties on examples that are new every time
	@$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile=explore -n $(JOBS) --durations=10

fuzz: $(VENV)/.ready-dev  ## mutate every kind of input for as long as told: make fuzz SECONDS=600; what breaks goes into tests/faults/corpus
	@$(BIN)/python benchmarks/_fuzz.py --seconds $(SECONDS) --keep

test-package: $(VENV)/.ready-dev  ## build the wheel and run it in new environments, for every Python from 3.11 on that is here
	@$(BIN)/python -m pytest -m slow tests/architecture/test_package.py

# Not --quiet: warnings that are not printed are not counted either, and strict means nothing then.
docs: $(VENV)/.ready-docs  ## the documentation as a site, in ./site; a link that leads nowhere is an error
	@test -f build/gallery/gallery.md || $(BIN)/python docs/site/gallery.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "site/index.html"

wheels: $(VENV)/.ready-dev  ## the wheel and all wheels that it needs, in ./dist/wheels: for machines without a network
	@rm -rf dist && $(BIN)/python -m build --wheel --outdir dist . >/dev/null
	@$(BIN)/python -m pip download -qq --disable-pip-version-check --only-binary=:all: -c constraints.txt -d dist/wheels dist/*.whl
	@cp dist/*.whl dist/wheels/ && ls dist/wheels

bench: $(VENV)/.ready-dev $(AXE)  ## every benchmark at its quick size; writes to ./results
	@set -e; for script in benchmarks/[!_]*.py; do echo "== $$script"; $(BIN)/python "$$script" --quick; done

format: $(VENV)/.ready-dev  ## rewrite the sources in the house style
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

clean:  ## remove the environment and everything that was generated
	@rm -rf $(VENV) demo results build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
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

$(VENV)/.ready-docs: $(VENV)/.ready-dev
	@echo "Installing what the site is built with …"
	@$(PIP) -e '.[docs]'
	@touch $@

# The rules of accessibility that the browser tests hold the explorer against. Without npm they say in red what did not run.
$(AXE): | $(VENV)/.ready-dev
	@npm install --silent --no-save --no-package-lock --prefix $(VENV)/axe axe-core@4.14.0 >/dev/null 2>&1 || echo "npm could not install axe-core: accessibility will not be checked" >&2
