# The README's commands: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
RFX := $(BIN)/rfx
STAMP := $(VENV)/installed
RESULTS := results
# of runs: one at a time, so that their seconds are comparable
JOBS ?= 1
# of tests: as many processes as cores
TEST_JOBS = -n $(if $(filter file,$(origin JOBS)),auto,$(JOBS)) --dist loadfile
PYTEST = $(BIN)/python -m pytest $(TEST_JOBS)
# A table that lacks a data set ends with an error; the next target still runs
MAKEFLAGS += --keep-going

.DEFAULT_GOAL := help
.PHONY: reproduce reproduce-quick reproduce-full report help install demo lint test test-quick test-oldest coverage fuzz kill-workers \
    docs docs-tables docs-numbers benchmark clean

help: ## List the targets
	@grep -hE '^[a-z0-9%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-38s %s\n", $$1, $$2}'

install: $(STAMP) ## Make the virtual environment .venv and install rfx in it

# An editable install: only a change of the metadata calls for another one
$(STAMP): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,dev,docs]"
	@touch $@

demo: $(STAMP) ## Install, then train, predict and evaluate as in the README: 3 to 4 minutes, half a minute once installed
	@mkdir -p demo
	cd demo && ../$(BIN)/python ../docs/houses.py
	$(RFX) train --data demo/houses.csv --target price --ignore id --model demo/model.npz --force
	@echo
	$(RFX) predict demo/model.npz demo/new.csv --interval 0.9 --format csv --id id --digits 4 -o demo/predicted.csv
	@head -4 demo/predicted.csv
	@echo
	$(RFX) eval demo/model.npz --data demo/new.csv --baseline demo/houses.csv

lint: $(STAMP) ## Check style and format with ruff, types with mypy, spelling with codespell; `.venv/bin/ruff format` fixes the format
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy rfx
	$(BIN)/codespell *.md *.cff Makefile docs rfx tests benchmarks

test: $(STAMP) lint ## Install, check the style, then run the tests in as many processes as there are cores; JOBS=1: in one
	$(PYTEST)

test-quick: $(STAMP) ## The tests that are not marked as slow: an answer in 90 seconds
	$(PYTEST) -m "not slow"

$(OLDEST)/installed: setup.cfg tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py | xargs $(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-oldest: $(OLDEST)/installed ## Run the tests with the oldest versions that setup.cfg allows; JOBS as for test
	$(subst $(BIN),$(OLDEST)/bin,$(PYTEST))

coverage: $(STAMP) ## Run the tests and print the lines of rfx that none of them reached, processes included; JOBS as for test
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TEST_JOBS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

fuzz: $(STAMP) ## Read a million mutated files, CASES of them if given: each is read, or rejected with a one-sentence error (hours)
	$(BIN)/python tests/fuzz --cases $(or $(CASES),1000000) --jobs $(JOBS)

kill-workers: $(STAMP) ## Kill a Dask worker in each of ROUNDS trainings and plans (20): compare models bitwise, check all rows and clean-up
	$(BIN)/python tests/kill_workers.py $(or $(ROUNDS),20)

docs: $(STAMP) ## Build the documentation site, docs/_build/html/index.html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

docs-tables: $(STAMP) ## Regenerate the tables of the documents, and those of the tests, from the results of the targets reproduce-…
	$(BIN)/python tests/docs_tables.py
	$(BIN)/python tests/papers/test_kept.py

docs-numbers: $(STAMP) ## Recompute the quick numbers of the documents (docs/numbers.toml); fails if one differs by more than its noise
	$(BIN)/python tests/docs_numbers.py

benchmark: $(STAMP) ## Run every benchmark, or ONLY=bench_l1.py, into docs/benchmarks.md (hours; needs the data sets)
	$(BIN)/python tests/docs_benchmarks.py "$(ONLY)"

# make reproduce-table1, reproduce-wu2016-fig3, reproduce-dai2014-synthetic-quick: runs what is missing of the plan, prints the table,
# draws the figure, and ends with the code of the run, 3 when a row could not be filled. FULL=1 also makes the rows that take hours
reproduce-%: $(STAMP) ## A table or figure: reproduce-table1, reproduce-wu2016-fig3; -quick for the small form, FULL=1 for all rows
	@$(RFX) reproduce $(if $(filter table% figure% corollary%,$*),yen2014-)$* --results $(RESULTS) --jobs $(JOBS) $(if $(FULL),--full)

# Each says first what it will run, for about how long and what it needs; resumes; ends with report/index.html. A run is a process;
# the small forms run two at a time, so that their seconds are not comparable. rfx warm compiles first what no run's seconds should have
reproduce: $(STAMP) ## All plans of the four papers that fit the machine, except those that take hours, then the report; resumable
	@$(RFX) warm
	@$(RFX) reproduce --results $(RESULTS) --output report --jobs $(JOBS)

reproduce-quick: $(STAMP) ## The small forms of all plans, then the report: 14 minutes on two cores
	@$(RFX) warm
	@$(RFX) reproduce --quick --results $(RESULTS) --output report --jobs 2

reproduce-full: $(STAMP) ## All plans, including those that take hours, then the report (days)
	@$(RFX) warm
	@$(RFX) reproduce --full --results $(RESULTS) --output report --jobs $(JOBS)

report: $(STAMP) ## One page of all results so far, report/index.html, from results/
	@$(RFX) report --results $(RESULTS) --output report

clean: ## Delete the virtual environments, build products and demo/, but not results/ and report/
	rm -rf $(VENV) $(OLDEST) build dist *.egg-info demo .coverage .coverage.* docs/_build docs/generated docs/gallery
