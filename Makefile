# The README's commands: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
RFX := $(BIN)/rfx
STAMP := $(VENV)/installed
RESULTS := results
JOBS ?= 1
# A table that lacks a data set ends with an error; the next target is made all the same
MAKEFLAGS += --keep-going

.DEFAULT_GOAL := help
WU2016 := table1 fig3 fig4 fig5 fig6
WU2016_THEORY := theorem1 speedup
SINHA2016 := table1 fig1 fig2 joint
DAI2014 := fig1-adult fig1-mnist8v6 fig1-forest fig1-mnist fig1-cifar10 fig1-imagenet fig1-qm7 fig1-molecularspace synthetic complexity choice
.PHONY: reproduce reproduce-quick reproduce-full report help install demo lint test test-oldest coverage stub fuzz kill-workers docs-tables docs-numbers benchmark clean \
    reproduce-table1 reproduce-table2 reproduce-table1-quick reproduce-table2-quick reproduce-figure1 reproduce-figure1-quick \
    reproduce-corollary1 reproduce-corollary1-quick reproduce-map-convergence reproduce-wu2016-fig2 \
    $(WU2016_THEORY:%=reproduce-wu2016-%) $(WU2016_THEORY:%=reproduce-wu2016-%-quick) \
    $(WU2016:%=reproduce-wu2016-%) $(WU2016:%=reproduce-wu2016-%-quick) \
    $(SINHA2016:%=reproduce-sinha2016-%) $(SINHA2016:%=reproduce-sinha2016-%-quick) \
    $(DAI2014:%=reproduce-dai2014-%) $(DAI2014:%=reproduce-dai2014-%-quick)

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-38s %s\n", $$1, $$2}'

install: $(STAMP) ## Make the virtual environment .venv and install rfx in it

# An editable install: only a change of the metadata calls for another one
$(STAMP): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,dev]"
	@touch $@

demo: $(STAMP) ## Install, then compare kernel, rf and sparse-rf on built-in data; no download
	@mkdir -p demo
	@rm -f demo/results.csv
	$(RFX) run demo --results demo/results.csv
	$(RFX) train --method sparse-rf --data breast_cancer --n-features 2000 --gamma median --model demo/model.npz
	@echo
	$(RFX) table summary --results demo/results.csv
	@echo
	@echo "Rows: demo/results.csv   Model: demo/model.npz   Try: $(RFX) eval demo/model.npz --data breast_cancer"

lint: $(STAMP) ## Check style and format with ruff; `.venv/bin/ruff format` mends the format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

test: $(STAMP) lint ## Install, check the style, then run the tests; JOBS=2: in two processes, a file in one of them
	$(BIN)/python -m pytest $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile)

$(OLDEST)/installed: setup.cfg tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py | xargs $(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-oldest: $(OLDEST)/installed ## Run the tests with the oldest versions that setup.cfg allows; JOBS=2 as for test
	$(OLDEST)/bin/python -m pytest $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile)

coverage: $(STAMP) ## Run the tests and print the lines of rfx that none of them reached, processes included
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

stub: $(STAMP) ## Write the signatures of rfx.estimators anew, for type checkers: after a change of a method's or a map's options
	$(BIN)/python -m rfx.estimators.stub

fuzz: $(STAMP) ## Read a million mutated files, CASES of them if given: each is read, or refused in one sentence (hours)
	$(BIN)/python tests/fuzz --cases $(or $(CASES),1000000) --jobs $(JOBS)

kill-workers: $(STAMP) ## Kill a Dask worker in each of ROUNDS trainings and plans (20): the same bits, all rows, nothing left behind
	$(BIN)/python tests/kill_workers.py $(or $(ROUNDS),20)

docs-tables: $(STAMP) ## Put the tables of the documents in anew, from the results of the targets reproduce-…
	$(BIN)/python tests/docs_tables.py

docs-numbers: $(STAMP) ## Make the quick numbers of the documents anew (docs/numbers.toml); fails where one differs beyond its noise
	$(BIN)/python tests/docs_numbers.py

benchmark: $(STAMP) ## Run every benchmark, or ONLY=bench_l1.py, into docs/benchmarks.md (hours; needs the data sets)
	$(BIN)/python tests/docs_benchmarks.py "$(ONLY)"

# Runs what is missing, prints the table, and keeps the code of the run: 3 when a row could not be filled. FULL=1 also runs the
# plan of the table's rows that take hours, where there is one
define reproduce
	@mkdir -p $(RESULTS)
	@$(RFX) run $(1) --results $(RESULTS)/$(1)$(2).csv --jobs $(JOBS) $(if $(2),--quick); code=$$?; \
	test $$code -eq 0 -o $$code -eq 3 || exit $$code; \
	if test -n "$(FULL)" -a -z "$(2)" && $(RFX) run --list | grep -q '^$(1)-full '; then \
	    $(RFX) run $(1)-full --results $(RESULTS)/$(1).csv --jobs $(JOBS); more=$$?; \
	    test $$more -eq 0 -o $$more -eq 3 || exit $$more; test $$code -ne 0 || code=$$more; \
	fi; \
	$(RFX) table $(1) --results $(RESULTS)/$(1)$(2).csv || exit $$?; \
	exit $$code
endef

reproduce-table1: $(STAMP) ## Yen et al. 2014, Table 1 (regression); FULL=1: the exact kernels that the paper could not run too (hours)
	$(call reproduce,yen2014-table1,)

reproduce-table1-quick: $(STAMP) ## The same with fewer features and rows, within 5 minutes
	$(call reproduce,yen2014-table1,-quick)

reproduce-table2: $(STAMP) ## Yen et al. 2014, Table 2 (classification); FULL=1: the exact kernels of covtype too (hours)
	$(call reproduce,yen2014-table2,)

reproduce-table2-quick: $(STAMP) ## The same with fewer features and rows, within 5 minutes
	$(call reproduce,yen2014-table2,-quick)

# The same with a figure in PNG and SVG beside the results
define reproduce-figure
	@mkdir -p $(RESULTS)
	@$(RFX) run $(1) --results $(RESULTS)/$(1)$(2).csv --jobs $(JOBS) $(if $(2),--quick); code=$$?; \
	test $$code -eq 0 -o $$code -eq 3 || exit $$code; \
	$(RFX) table $(1) --results $(RESULTS)/$(1)$(2).csv || exit $$?; \
	$(RFX) figure $(1) --results $(RESULTS)/$(1)$(2).csv --output $(RESULTS)/$(1)$(2) || exit $$?; \
	exit $$code
endef

reproduce-figure1: $(STAMP) ## Yen et al. 2014, Figure 1: Sparse-RF, boosting and the kernel's line (hours)
	$(call reproduce-figure,yen2014-figure1,)

reproduce-figure1-quick: $(STAMP) ## The same for cod-rna, two seeds and fewer features, within 5 minutes
	$(call reproduce-figure,yen2014-figure1,-quick)

reproduce-corollary1: $(STAMP) ## Yen et al. 2014, Corollary 1: the objective of Sparse-RF against D, and the bound
	$(call reproduce-figure,yen2014-corollary1,)

reproduce-corollary1-quick: $(STAMP) ## The same for cpu, two seeds and D up to 8,192, within 5 minutes
	$(call reproduce-figure,yen2014-corollary1,-quick)

reproduce-map-convergence: $(STAMP) ## The error of the kernel against the number of features, of every map; needs no data
	@mkdir -p $(RESULTS)
	@$(RFX) table map-convergence
	@$(RFX) figure map-convergence --output $(RESULTS)/

reproduce-wu2016-table1: $(STAMP) ## Wu et al. 2016, Table 1: the data sets' sizes, checked against the data
	$(call reproduce,wu2016-table1,)

reproduce-wu2016-table1-quick: $(STAMP) ## The same for five data sets
	$(call reproduce,wu2016-table1,-quick)

reproduce-wu2016-fig3: $(STAMP) ## Wu et al. 2016, Figure 3: random binning while sigma varies
	$(call reproduce-figure,wu2016-fig3,)

reproduce-wu2016-fig3-quick: $(STAMP) ## The same for two data sets, five sigmas and two seeds, within 5 minutes
	$(call reproduce-figure,wu2016-fig3,-quick)

reproduce-wu2016-fig4: $(STAMP) ## Wu et al. 2016, Figure 4: random binning while R varies
	$(call reproduce-figure,wu2016-fig4,)

reproduce-wu2016-fig4-quick: $(STAMP) ## The same for two data sets, three R and two seeds, within 5 minutes
	$(call reproduce-figure,wu2016-fig4,-quick)

reproduce-wu2016-fig5: $(STAMP) ## Wu et al. 2016, Figure 5: random binning beside RF, Nystrom, blocks, the exact kernel
	$(call reproduce-figure,wu2016-fig5,)

reproduce-wu2016-fig5-quick: $(STAMP) ## The same for cadata, three R and two seeds, within 5 minutes
	$(call reproduce-figure,wu2016-fig5,-quick)

reproduce-wu2016-fig6: $(STAMP) ## Wu et al. 2016, Figure 6: speed-up over threads (on an idle machine)
	$(call reproduce-figure,wu2016-fig6,)

reproduce-wu2016-fig6-quick: $(STAMP) ## The same for two data sets and two seeds, within 5 minutes
	$(call reproduce-figure,wu2016-fig6,-quick)

reproduce-wu2016-fig2: $(STAMP) ## Wu et al. 2016, Figure 2: a grid in the plane and its features; needs no data
	@mkdir -p $(RESULTS)
	@$(RFX) figure wu2016-fig2 --output $(RESULTS)/

reproduce-wu2016-theorem1: $(STAMP) ## Wu et al. 2016, Theorem 1: the objective of random binning against kappa R
	$(call reproduce-figure,wu2016-theorem1,)

reproduce-wu2016-theorem1-quick: $(STAMP) ## The same for cpusmall, one width and two seeds, within 5 minutes
	$(call reproduce-figure,wu2016-theorem1,-quick)

# Of the same runs as Figure 6
reproduce-wu2016-speedup: reproduce-wu2016-fig6 ## Wu et al. 2016, equations 29 and 30 beside Figure 6 (on an idle machine)
	@$(RFX) table wu2016-speedup --results $(RESULTS)/wu2016-fig6.csv
	@$(RFX) figure wu2016-speedup --results $(RESULTS)/wu2016-fig6.csv --output $(RESULTS)/

reproduce-wu2016-speedup-quick: reproduce-wu2016-fig6-quick ## The same of Figure 6's quick runs
	@$(RFX) table wu2016-speedup --results $(RESULTS)/wu2016-fig6-quick.csv
	@$(RFX) figure wu2016-speedup --results $(RESULTS)/wu2016-fig6-quick.csv --output $(RESULTS)/wu2016-speedup-quick

reproduce-sinha2016-table1: $(STAMP) ## Sinha and Duchi 2016, Table 1: learnt and random features, error and time (hours)
	$(call reproduce-figure,sinha2016-table1,)

reproduce-sinha2016-table1-quick: $(STAMP) ## The same for adult and text and one seed
	$(call reproduce-figure,sinha2016-table1,-quick)

reproduce-sinha2016-fig1: $(STAMP) ## Sinha and Duchi 2016, learning a kernel: error over the dimension, frequencies chosen
	$(call reproduce-figure,sinha2016-fig1,)

reproduce-sinha2016-fig1-quick: $(STAMP) ## The same for four dimensions and one seed
	$(call reproduce-figure,sinha2016-fig1,-quick)

reproduce-sinha2016-fig2: $(STAMP) ## Sinha and Duchi 2016, feature selection: coordinates and words of sequences
	$(call reproduce-figure,sinha2016-fig2,)

reproduce-sinha2016-fig2-quick: $(STAMP) ## The same for two seeds
	$(call reproduce-figure,sinha2016-fig2,-quick)

reproduce-sinha2016-joint: $(STAMP) ## Sinha and Duchi 2016: features by scores beside features learnt together with the weights
	$(call reproduce,sinha2016-joint,)

reproduce-sinha2016-joint-quick: $(STAMP) ## The same for two data sets and one seed
	$(call reproduce,sinha2016-joint,-quick)

reproduce-dai2014-fig1-adult: $(STAMP) ## Dai et al. 2014, Figure 1: adult, seven methods, one pass and equal time
	$(call reproduce-figure,dai2014-fig1-adult,)

reproduce-dai2014-fig1-adult-quick: $(STAMP) ## The same with fewer features and five seconds
	$(call reproduce-figure,dai2014-fig1-adult,-quick)

reproduce-dai2014-fig1-mnist8v6: $(STAMP) ## Dai et al. 2014, Figure 1: 8 against 6 with virtual examples (an hour)
	$(call reproduce-figure,dai2014-fig1-mnist8v6,)

reproduce-dai2014-fig1-mnist8v6-quick: $(STAMP) ## The same with 60,000 examples and three seconds
	$(call reproduce-figure,dai2014-fig1-mnist8v6,-quick)

reproduce-dai2014-fig1-forest: $(STAMP) ## Dai et al. 2014, Figure 1: forest, covtype in full (an hour)
	$(call reproduce-figure,dai2014-fig1-forest,)

reproduce-dai2014-fig1-forest-quick: $(STAMP) ## The same with 40,000 rows and four seconds
	$(call reproduce-figure,dai2014-fig1-forest,-quick)

reproduce-dai2014-fig1-mnist: $(STAMP) ## Dai et al. 2014, Figure 1: ten digits, 3.3 million virtual examples, and a network (hours)
	$(call reproduce-figure,dai2014-fig1-mnist,)

reproduce-dai2014-fig1-mnist-quick: $(STAMP) ## The same with 120,000 examples
	$(call reproduce-figure,dai2014-fig1-mnist,-quick)

reproduce-dai2014-fig1-qm7: $(STAMP) ## Dai et al. 2014, Figure 1: energies of molecules (two hours)
	$(call reproduce-figure,dai2014-fig1-qm7,)

reproduce-dai2014-fig1-qm7-quick: $(STAMP) ## The same with smaller blocks, and 120,000 examples
	$(call reproduce-figure,dai2014-fig1-qm7,-quick)

reproduce-dai2014-fig1-cifar10: $(STAMP) ## Dai et al. 2014, Figure 1: CIFAR 10 on features that you have
	$(call reproduce-figure,dai2014-fig1-cifar10,)

reproduce-dai2014-fig1-cifar10-quick: $(STAMP) ## The same with some thousand rows
	$(call reproduce-figure,dai2014-fig1-cifar10,-quick)

reproduce-dai2014-fig1-imagenet: $(STAMP) ## Dai et al. 2014, Figure 1: ImageNet on features that you have
	$(call reproduce-figure,dai2014-fig1-imagenet,)

reproduce-dai2014-fig1-imagenet-quick: $(STAMP) ## The same with some thousand rows
	$(call reproduce-figure,dai2014-fig1-imagenet,-quick)

reproduce-dai2014-fig1-molecularspace: $(STAMP) ## Dai et al. 2014, Figure 1: molecules that you have
	$(call reproduce-figure,dai2014-fig1-molecularspace,)

reproduce-dai2014-fig1-molecularspace-quick: $(STAMP) ## The same with some thousand rows
	$(call reproduce-figure,dai2014-fig1-molecularspace,-quick)

reproduce-dai2014-synthetic: $(STAMP) ## Dai et al. 2014: the ripple, rates and all methods
	$(call reproduce-figure,dai2014-synthetic,)

reproduce-dai2014-synthetic-quick: $(STAMP) ## The same with an eighth of the steps
	$(call reproduce-figure,dai2014-synthetic,-quick)

reproduce-dai2014-complexity: $(STAMP) ## Dai et al. 2014: computation and storage, measured powers
	$(call reproduce-figure,dai2014-complexity,)

reproduce-dai2014-complexity-quick: $(STAMP) ## The same with up to 4,096 rows
	$(call reproduce-figure,dai2014-complexity,-quick)

reproduce-dai2014-choice: $(STAMP) ## Dai et al. 2014: settings of adult and QuantumMachine by held-out training rows
	$(call reproduce,dai2014-choice,)

reproduce-dai2014-choice-quick: $(STAMP) ## The same with fewer features and rows
	$(call reproduce,dai2014-choice,-quick)

# Each says first what it will run, for about how long and what it needs; resumes; ends with report/index.html. A run is a process;
# the small forms run two at a time, so that their seconds are not comparable. rfx warm compiles first what no run's seconds should have
reproduce: $(STAMP) ## All plans of the four papers that fit the machine but those of hours each, resuming, then the report
	@$(RFX) warm
	@$(RFX) reproduce --results $(RESULTS) --output report --jobs $(JOBS)

reproduce-quick: $(STAMP) ## The small forms of all plans, then the report: 14 minutes on two cores
	@$(RFX) warm
	@$(RFX) reproduce --quick --results $(RESULTS) --output report --jobs 2

reproduce-full: $(STAMP) ## All plans, those of hours each too, then the report (days)
	@$(RFX) warm
	@$(RFX) reproduce --full --results $(RESULTS) --output report --jobs $(JOBS)

report: $(STAMP) ## One page of what was run so far, report/index.html, from results/
	@$(RFX) report --results $(RESULTS) --output report

clean: ## Delete the virtual environments, what was built and demo/, but not results/ and report/
	rm -rf $(VENV) $(OLDEST) build dist *.egg-info demo .coverage .coverage.*
