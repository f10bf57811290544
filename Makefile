# Each target installs what it needs: a virtual environment here, and jars in the user's cache.

PYTHON ?= python3
PYSPARK ?= pyspark
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/demo-ready
READY := $(VENV)/ready
BENCH_READY := $(VENV)/bench-ready
MUTANTS_READY := $(VENV)/mutants-ready
MATRIX_READY := $(VENV)/matrix-ready
SITE_READY := $(VENV)/site-ready
FUZZ_READY := $(VENV)/fuzz-ready
GROUPS := dev bench site publish fuzz matrix mutants
PUBLISH := $(VENV)/publish
PUBLISH_READY := $(PUBLISH)/ready
KERNELS := src/pyspark_kafka/adapters/kernels/kernels.json
KERNEL_SOURCES := $(shell find kernel_build src/pyspark_kafka -name '*.py')
WHEELS := linux-x86_64:manylinux_2_17_x86_64 linux-x86_64:musllinux_1_1_x86_64 \
	linux-aarch64:manylinux_2_17_aarch64 linux-aarch64:musllinux_1_1_aarch64 \
	macos-x86_64:macosx_11_0_x86_64 macos-aarch64:macosx_11_0_arm64 windows-x86_64:win_amd64
CLI := $(BIN)/python -m pyspark_kafka
# The versions that `make lock` chose; another Spark brings its own.
LOCKED := $(if $(filter pyspark,$(PYSPARK)),--constraint constraints.txt)
INSTALL := $(BIN)/python -m pip install --quiet $(LOCKED)
# Wordings to avoid, each with what to write instead. With --regex, codespell looks up phrases as well
# as words, if they are in one line.
WORDING := wording.txt
GENERATED = $(shell grep -rl 'do not edit' docs --include='*.md')
SPARKS_WORDS := available in Kafka any more

# Some images set it: each of the thousands of Python processes of a run then compiles its modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test nightly soak simulate trials fuzz mutants matrix check coverage bench docs site dist lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO_READY) $(KERNELS) ## stream JSON events from a broker through Spark to another topic: make demo ARGS=--continuous
	@$(CLI) demo $(ARGS)

test: $(READY) $(PUBLISH_READY) $(KERNELS) ## run the tests of a change, against a real Apache Kafka and a real Spark
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

nightly: $(FUZZ_READY) $(MUTANTS_READY) $(PUBLISH_READY) $(KERNELS) ## run all tests, and all programs that search for faults: make nightly ARGS="--only 'fuzz-*'"
	@$(BIN)/python -m verification.nightly $(ARGS)

soak: $(READY) $(KERNELS) ## kill brokers, workers and drivers, and check every record: make soak ARGS='--rounds 100'
	@$(BIN)/python -m verification.soak $(ARGS)

simulate: $(READY) $(KERNELS) ## simulate schedules with faults, in virtual time: make simulate ARGS='sink --schedules 300000'
	@$(BIN)/python -m verification.simulator $(ARGS)

trials: $(READY) $(KERNELS) ## compare random queries and values with those of others, or look for secrets: make trials ARGS='differential|secrets|values|spark-values --minutes 60'
	@$(BIN)/python -m verification.trials $(ARGS)

fuzz: $(FUZZ_READY) $(KERNELS) ## fuzz the parsers of untrusted input: make fuzz ARGS='--target decoder|kernels|exchange|responses|files|json|protobuf|avro|encode-json|encode-avro|encode-protobuf --minutes 60'
	@$(BIN)/python -m verification.fuzz $(ARGS)

mutants: $(MUTANTS_READY) $(KERNELS) ## change the domain and the use cases, and see whether tests fail: make mutants ARGS='--layer domain'
	@$(BIN)/python -m verification.mutants $(ARGS)

matrix: $(MATRIX_READY) $(KERNELS) ## test each supported Spark, Python, broker and lowest package: make matrix ARGS='--only kafka-*'
	@$(BIN)/python -m verification.matrix $(ARGS)

check: $(READY) $(KERNELS) ## check style, spelling, wording, types, layers and generated pages
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/codespell --dictionary $(WORDING) $(GENERATED:%=--skip %) --ignore-regex '$(SPARKS_WORDS)' \
	  --regex "(?i)(?<!\w)($$(sed 's/->.*//' $(WORDING) | paste -s -d '|' -))(?!\w)" src docs *.md
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 src
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

coverage: $(READY) $(KERNELS) ## check that its unit tests run every line and branch of the domain
	$(BIN)/python -m pytest -q --numprocesses auto tests/unit/domain tests/unit/test_errors.py tests/unit/test_imports.py --cov=pyspark_kafka.domain --cov-report=term --cov-fail-under=100

bench: $(BENCH_READY) $(KERNELS) ## run the benchmarks, and write the pages that have figures: make bench ARGS='--only batch --runs 3'
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(READY) $(KERNELS) ## regenerate the generated pages
	$(BIN)/python docs/generate.py

site: $(SITE_READY) $(KERNELS) ## build the documentation in site/VERSION
	@version=$$($(BIN)/python -c 'import pyspark_kafka; print(pyspark_kafka.__version__)') && \
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d build/site docs "site/$$version" && \
	echo "The pages are in site/$$version: open index.html"

dist: $(PUBLISH_READY) $(KERNELS) ## build the sdist and the wheels in dist, and check them as a package index does
	@rm -rf dist
	@$(BIN)/python -m build --sdist --no-isolation --quiet
	@set -e; for target in $(WHEELS); do \
	  $(BIN)/python -m build --wheel --no-isolation --quiet -C target=$${target%:*} -C tag=$${target#*:}; done
	@$(BIN)/python -m kernel_build --if-needed
	@$(PUBLISH)/bin/twine check --strict dist/*
	@$(PUBLISH)/bin/check-wheel-contents dist/*.whl

lock: $(MATRIX_READY) ## choose the newest version of each package for the other targets: constraints.txt
	@$(BIN)/uv pip compile pyproject.toml --all-extras $(GROUPS:%=--group %) --universal \
	  --python-version 3.11 --upgrade --no-header --no-annotate --no-emit-index-url --quiet \
	  --output-file constraints.txt

clean: ## remove what the other targets created here
	rm -rf $(VENV) build dist site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(KERNELS): $(DEMO_READY) $(KERNEL_SOURCES)
	@$(BIN)/python -m kernel_build --if-needed
	@touch $@

# The compiler of kernels is installed once, here, and not also for a build in isolation.
$(DEMO_READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV); this takes a minute or two the first time ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(INSTALL) --group kernels
	@$(INSTALL) --no-build-isolation --editable '.[all]' '$(PYSPARK)'
	@touch $@

$(READY): $(DEMO_READY)
	@echo "Installing what tests need ..."
	@$(INSTALL) --no-build-isolation --editable '.[all]' --group dev '$(PYSPARK)'
	@$(BIN)/python -m tests.servers.gssapi_wheel
	@touch $@

$(BENCH_READY): $(READY)
	@$(INSTALL) --group bench
	@touch $@

$(FUZZ_READY): $(READY)
	@$(INSTALL) --group fuzz
	@touch $@

$(MUTANTS_READY): $(READY)
	@$(INSTALL) --group mutants
	@touch $@

$(MATRIX_READY): $(READY)
	@$(INSTALL) --group matrix
	@touch $@

$(SITE_READY): $(READY)
	@$(INSTALL) --group site
	@touch $@

$(PUBLISH_READY): $(READY)
	@$(PYTHON) -m venv --without-pip $(PUBLISH)
	@$(BIN)/python -m pip --python $(PUBLISH)/bin/python install --quiet $(LOCKED) --group publish
	@touch $@
