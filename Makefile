# Each target does its own set-up, once: a virtual environment in .venv with the tested versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed
SETUP_DOCS := $(VENV)/.installed-docs

.PHONY: demo test fuzz lint format bench docs wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    see what it does"
	@echo "make test    run the tests"
	@echo "make fuzz    20,000 damaged inputs; make test tries 2,000"
	@echo "make lint    ruff, mypy, import-linter"
	@echo "make bench   the benchmarks, each against a peer in the same run"
	@echo "make docs    build the documentation into site/"
	@echo "make wheel   build wheel and sdist into dist/, and try the wheel"

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,export,ray]"
	touch $@

$(SETUP_DOCS): $(SETUP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

demo: $(SETUP)
	$(BIN)/lookhops demo

# A file stays with one worker, which makes what its tests share once; conftest.py has their order.
test: $(SETUP)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q $(ARGS)

fuzz: $(SETUP)
	LOOKHOPS_FUZZ=20000 $(BIN)/python -m pytest -n 2 -q tests/fuzz $(ARGS)

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(SETUP)
	for file in benchmarks/[a-z]*.py; do $(BIN)/python $$file || exit 1; done

# The example on the site is the demo's own report.
demo/report.html: | $(SETUP)
	$(BIN)/lookhops demo

docs: $(SETUP_DOCS) demo/report.html
	PYTHONPATH=docs $(BIN)/zensical build --clean --strict
	cp demo/report.html site/example.html

wheel: $(SETUP)
	.ci/wheel

clean:
	rm -rf $(VENV) site build dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
