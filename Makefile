# Every target sets up what it needs in a virtual environment; Python 3.11 or later and make are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where the machine forbids it, every process of the tests would read all sources anew: more than a second each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help reproduce test coverage lint warm hostile docs bench numba dist clean

help:
	@echo "make reproduce  the paper's figures and tables beside ours, into report/index.html"
	@echo "make test       install, lint, types, import rules, all tests"
	@echo "make coverage   the same tests, and the lines that none of them reaches"
	@echo "make lint       style, types and import rules only"
	@echo "make hostile    hostile cases by the hundred thousand, with their counts (minutes)"
	@echo "make docs       build the documentation into docs/_build/html"
	@echo "make dist       build the wheel and the source archive into dist, and try both in empty environments"
	@echo "make bench      print the benchmark tables"
	@echo "make numba      try the oldest numba that is declared and the newest there is, each in an environment of its own"
	@echo "make clean      remove everything the other targets made"

# One stamp per extra: $(VENV)/.dev means that sbnet[dev] is installed, editable; $(VENV)/.base, sbnet alone.
$(VENV)/.%: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "sbnet needs Python 3.11 or later"; exit 1; }
	@echo "installing sbnet$(filter-out [base],[$*]) into $(VENV)"
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".$(filter-out [base],[$*])"
	@touch $@

reproduce: $(VENV)/.base
	$(BIN)/sbnet reproduce all --seeds 5 --out report

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Kernels are compiled once, before two processes would both do it, and while types are checked.
test: $(VENV)/.dev
	$(MAKE) --jobs 2 lint warm
	$(BIN)/python -m pytest --numprocesses 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q --numprocesses 2 -m small

# Lines of kernels are seen where nothing is compiled: the second run adds them to what the first has counted.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -q --numprocesses 2 --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q --numprocesses 2 -m small --cov --cov-append --cov-report term:skip-covered

warm: $(VENV)/.dev
	$(BIN)/sbnet warmup --quiet

hostile: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow --capture=no --quiet --numprocesses 0

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

numba: $(VENV)/.base
	$(BIN)/python scripts/try_numba.py

dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/try_dist.py dist

clean:
	rm -rf $(VENV) report docs/_build docs/examples docs/reference/generated docs/reference/_names.rst .cache dist .coverage .hypothesis .pytest_cache .mypy_cache \
	  .ruff_cache .import_linter_cache
