# Two commands: `make book` and `make test`. Both set up everything they need in .venv; nothing else is touched.
PYTHON ?= python3
PRESET ?= quick
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Tests run side by side and leave each other a core: matrix products take one thread in each process. Compiled loops keep
# theirs, so that what they do in parallel is tried.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/pytest
# Compiled modules are kept, whatever the shell says: every test process and every kernel starts the sooner.
export PYTHONDONTWRITEBYTECODE :=
# The files whose tests look at the built book: each of three processes would read all the others for nothing.
BOOK_TESTS = $(shell grep -lrE 'needs_book|mark\.book' tests --include='test_*.py')

.PHONY: help book test setup lint types unit chapters pair format links lock clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

book: setup  ## execute every chapter (PRESET=quick) and render the book
	@$(BIN)/btcnb build --preset $(PRESET) --jobs $(JOBS)

test: setup  ## lint, types, tests, chapters, rendered book
	@$(MAKE) --no-print-directory --jobs 2 lint unit
	@$(MAKE) --no-print-directory --jobs 2 types chapters  # the first chapters leave a core idle while they import

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

lint: setup  ## style of code and chapters, layers of the package, notebook pairs
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-logo --no-cache && $(BIN)/btcnb pair --check

types: setup
	@$(BIN)/mypy

unit: setup  ## tests that need no built book
	@$(PYTEST) -n 2 --dist worksteal -m "not book and not nightly"  # tests of a file stay together: what they share is made once

chapters: setup  ## build both editions at preset quick, then read it as a reader's browser would
	@$(BIN)/btcnb build --preset quick --edition both --jobs $(JOBS)
	@$(PYTEST) -n 3 --dist loadgroup -m "book and not nightly" $(BOOK_TESTS)

pair: setup  ## write the .ipynb pairs of the text notebooks
	@$(BIN)/btcnb pair

format: setup  ## format code and the code cells of the chapters, then write the pairs
	@$(BIN)/ruff check --fix --exit-zero --quiet src tests tools benchmarks packages && $(BIN)/ruff format --quiet src tests tools benchmarks packages
	@$(BIN)/python tools/format_notebooks.py && $(BIN)/btcnb pair

links: setup  ## follow every link of the built book (needs the network)
	@$(BIN)/python tools/check_links.py _build/$(PRESET)/html

lock: setup  ## make requirements.lock again (tools/lock.py tells what it needs)
	@$(BIN)/python tools/lock.py

clean:  ## remove what was built (the caches stay)
	rm -rf _build
