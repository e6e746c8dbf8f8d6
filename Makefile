# Two commands do everything: `make demo` and `make test`. Each makes an environment of its own first
# (.venv-demo, .venv); nothing is installed anywhere else, and no network is used once that is done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .venv-demo
READY := $(VENV)/.ready
LOWEST := .venv-lowest
LOCK := requirements/test.lock

PIP_INSTALL = -m pip install --quiet --disable-pip-version-check
EDITABLE := --no-deps --no-build-isolation --editable .
# Small matrices: one thread per process is faster than many, and two test processes share a machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2
PYTEST := -m pytest --quiet
# Old libraries use functions that newer ones among them have deprecated.
OLD_LIBRARIES := -W default::DeprecationWarning -W default::PendingDeprecationWarning

.DEFAULT_GOAL := help
.PHONY: help demo test docs docs-serve docs-check theory-pdf lint types imports unit test-slow test-lowest mutants fuzz bench coverage cov lock clean

help:
	@echo "make demo         run the main job on the Wine data"
	@echo "make test         style, types, import directions and tests"
	@echo "make docs         the documentation site, in build/site"
	@echo "make docs-serve   show it on this machine (PORT=8000)"
	@echo "make docs-check   build it and check links, anchors, and pages in a browser"
	@echo "make theory-pdf   the theory as one article, in build/theory.pdf (needs Chromium)"
	@echo "make test-slow    the long studies"
	@echo "make test-lowest  the tests on the lowest declared versions (Python 3.11 or 3.12)"
	@echo "make mutants      a mutation run of one package (PACKAGE=certificates COUNT=60 SEED=0)"
	@echo "make fuzz         random problems and files for FUZZ_SECONDS=60"
	@echo "make bench        speed, as ratios to one eigendecomposition"
	@echo "make coverage     how often confident floors hold: a simulation of half an hour, and its table in the docs"
	@echo "make cov          which lines and branches the tests execute"
	@echo "make lock         renew the locked versions"
	@echo "make clean        remove the environments and caches"

demo: $(DEMO)/.ready
	$(DEMO)/bin/python examples/demo.py

test: lint types imports unit

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# Lines and branches that no test executes, in the processes that tests start as well. Tracing is slow: no time limit.
# In pieces: make cov TESTS=tests/cli adds those tests to what was measured before.
LINES := COVERAGE_FILE=$(CURDIR)/build/lines/data
TESTS ?=
cov: $(READY)
	mkdir -p build/lines
	$(if $(TESTS),,$(LINES) $(BIN)/python -m coverage erase)
	$(LINES) $(ONE_THREAD) $(BIN)/python -m coverage run $(PYTEST) -p no:benchmark -o faulthandler_timeout=0 -m "not slow and not site" $(TESTS)
	$(LINES) $(BIN)/python -m coverage combine --quiet --append
	$(LINES) $(BIN)/python -m coverage report --skip-covered --sort=cover

# What failed the last time comes first, then what was edited last; a file stays in one process, for its fixtures.
unit: $(READY)
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -p no:benchmark -n $(WORKERS) --dist loadfile --failed-first --new-first -m "not slow and not site"

# A warning is an error: an unknown reference, an example that fails, a page that nothing leads to.
docs: $(READY)
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going --quiet -j $(WORKERS) -d build/doctrees docs build/site

PORT ?= 8000
docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site $(PORT)

docs-check: docs
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -p no:benchmark -m site tests/site

# The pages of the theory without their numerical checks; fonts-lmodern sets the text in the letters of the formulas.
theory-pdf: $(READY)
	$(ONE_THREAD) $(BIN)/python docs/_article/build.py

test-slow: $(READY)
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -p no:benchmark -m slow

test-lowest: $(LOWEST)/.ready
	$(ONE_THREAD) $(LOWEST)/bin/python $(PYTEST) $(OLD_LIBRARIES) -n $(WORKERS) -m "not slow and not site"

# One small bug at a time, which the tests have to detect: make mutants PACKAGE=tradeoff COUNT=100 SEED=1
PACKAGE ?= certificates
COUNT ?= 60
SEED ?= 0
mutants: $(READY)
	$(ONE_THREAD) $(BIN)/python benchmarks/mutants $(PACKAGE) --count $(COUNT) --seed $(SEED)

# Random problems and files with fresh seeds; prints a table and fails if anything went wrong.
FUZZ_SECONDS ?= 60
fuzz: $(READY)
	$(ONE_THREAD) $(BIN)/python tests/fuzz --seconds $(FUZZ_SECONDS)

bench: $(READY)
	$(ONE_THREAD) $(BIN)/python $(PYTEST) --benchmark-timer=time.process_time --benchmark-columns=min,median,rounds benchmarks

# Finished cells are kept in .coverage.jsonl: remove it to begin anew.
JOBS ?= 1
coverage: $(READY)
	$(ONE_THREAD) $(BIN)/python benchmarks/coverage.py --jobs $(JOBS) --results .coverage.jsonl --write docs/theory/sampling.md --picture docs/images/confidence.png

lock: $(READY)
	$(BIN)/python $(PIP_INSTALL) uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
		--all-extras --group dev pyproject.toml --output-file $(LOCK)
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-header --no-annotate --all-extras \
		--group test --group build --constraint requirements/lowest.in pyproject.toml \
		--output-file requirements/lowest.txt

clean:
	rm -rf $(VENV) $(DEMO) $(LOWEST) build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks

# Half an environment (no ensurepip, no space) would pass for a whole one the next time.
$(BIN)/python $(DEMO)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(f"Python 3.11 or newer is needed, {sys.executable} is {v}; name another one: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(@:/bin/python=) || { rm -rf $(@:/bin/python=); exit 1; }

# The package with its three dependencies and nothing else, at the locked versions.
$(DEMO)/.ready: $(LOCK) pyproject.toml | $(DEMO)/bin/python
	$(DEMO)/bin/python $(PIP_INSTALL) --constraint $(LOCK) numpy scipy scikit-learn hatchling editables
	$(DEMO)/bin/python $(PIP_INSTALL) $(EDITABLE)
	touch $@

# The lock is complete, so nothing is resolved, and `pip check` fails if it is not; modules are compiled when
# they are first imported.
$(READY): $(LOCK) pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) --no-deps --no-compile --requirement $(LOCK)
	$(BIN)/python $(PIP_INSTALL) $(EDITABLE)
	$(BIN)/python -m pip check --disable-pip-version-check
	touch $@

$(LOWEST)/.ready: requirements/lowest.txt pyproject.toml
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST) || { rm -rf $(LOWEST); exit 1; }
	$(LOWEST)/bin/python $(PIP_INSTALL) --requirement requirements/lowest.txt
	$(LOWEST)/bin/python $(PIP_INSTALL) $(EDITABLE)
	touch $@
