# `make grade` and `make test` do all the set-up: Python 3.11 or newer, pip and make are enough.

PYTHON ?= python3
IMPL ?= reference_impl
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: grade test bench lint fixtures adequacy security class clean

grade: $(READY)
	$(BIN)/conformance grade $(IMPL) $(GRADE_OPTIONS)

# In two processes, which many of the tests spend waiting for a third.
test: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(TEST_OPTIONS)

# On an idle machine: the ratios of the reference itself, for reports/benchmarks.md.
bench: $(READY)
	$(BIN)/python tests/publish_bench.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy conformance reference_impl

fixtures: $(READY)
	$(BIN)/conformance fixtures build
	$(BIN)/conformance fixtures verify

# Proves the suite: every known fault against every check, every diagnosis, mutants of the reference.
# It goes on where it was stopped.
adequacy: $(READY)
	$(BIN)/python tests/adequacy.py
	$(BIN)/python tests/diagnosing.py --jobs 2 --report
	$(BIN)/python tests/mutation.py

# Grades every hostile and broken submission, without and with a sandbox: reports/security.md.
security: $(READY)
	$(BIN)/python tests/hostile/report.py
	$(BIN)/python tests/hostile/fuzz.py --count 200000

# A class of 100, graded in one go, and killed and resumed: reports/class.md.
class: $(READY)
	$(BIN)/python tests/measure_class.py $(CLASS_OPTIONS)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[course,known,dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
