# Two commands are all that is needed: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Half as many tests again at once as there are cores: they also wait for servers.
ATONCE := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 3 / 2 )))
APT    := apt-get install --yes --quiet --no-install-recommends

.PHONY: help demo check test lint dist lock docs bench bench-postgres bench-server torture clean redis-server chromium atheris engine-servers foreign-packages sdk
help:          ## this list
	@grep -E '^[a-z-]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 16

demo: $(VENV)/core  ## a bilingual conversation goes in, memories come out, searches find them
	@$(BIN)/jiyi demo

# Tests without servers, models or other processes.
FAST := $(wildcard tests/test_languages_*.py) $(addprefix tests/test_,house.py settings.py text_hashes.py score.py \
  files_format.py llm_reading.py keys.py metrics.py add.py)

check: $(VENV)/dev  ## style, types and fast tests, in about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m "not slow" -k "not postgres" $(FAST)

test: $(VENV)/dev redis-server chromium engine-servers foreign-packages sdk  ## style, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses $(ATONCE) --dist worksteal || \
	  { echo "Running what failed once more, one test at a time: on a shared machine a test can fail for want of time."; \
	  $(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail 3 --numprocesses 0; }

engine-servers: $(VENV)/dev  # OpenSearch and FerretDB for the tests; the first time takes some minutes
	@$(BIN)/python tests/engine_servers.py

foreign-packages: $(VENV)/dev  # sources and packages that are tested outside of .venv
	@$(BIN)/python tests/foreign_packages.py

atheris:  # for one trial; it has wheels for x86_64 only
	@$(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: atheris 2>/dev/null || \
	  echo "there is no wheel of atheris for this machine: the trial “fuzzing” is left out"

redis-server chromium:  # for the tests; without them those that need them are skipped, loudly, or fail where CI=true
	@command -v $@ >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { $(APT) $@ || { apt-get update --quiet && $(APT) $@; } } >/dev/null 2>&1; } || \
	  echo "$@ is not installed (Debian: apt-get install $@)"

SDK := sdk/typescript
sdk:  # packages for the tests of the TypeScript client; without Node they are skipped, loudly, or fail where CI=true
	@if ! command -v npm >/dev/null 2>&1; then echo "Node is not installed: the TypeScript client is not tested"; \
	elif [ ! -e $(SDK)/node_modules/.package-lock.json ] || \
	  [ $(SDK)/node_modules/.package-lock.json -ot $(SDK)/package-lock.json ]; then \
	  echo "Installing packages into $(SDK)/node_modules …"; \
	  (cd $(SDK) && npm ci --silent && touch node_modules/.package-lock.json) || \
	  { rm -rf $(SDK)/node_modules; echo "npm ci failed: the TypeScript client is not tested"; }; fi

lint: $(VENV)/dev  ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench  ## how fast it is, against a floor measured in the same run
	$(BIN)/python -m bench

bench-postgres: $(VENV)/bench  ## searches in PostgreSQL, against pgvector's own exact query
	$(BIN)/python -m bench.postgres

bench-server: $(VENV)/bench  ## a running server under load, against the engine in process
	$(BIN)/python -m bench.server
	$(BIN)/python -m bench.capacity

dist: $(VENV)/dev  ## a wheel and an sdist, in dist/
	$(BIN)/python -m hatchling build

lock:          ## write deploy/constraints.txt: versions for the container, whose Python is 3.12
	python3.12 deploy/lock.py

docs: $(VENV)/dev  ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

torture: $(VENV)/dev redis-server atheris engine-servers  ## faults on purpose: SCALE=0.01 takes minutes, 1 hours (docs/internals/reliability.md)
	$(BIN)/python -m torture --scale $(or $(SCALE),0.01) $(TRIAL)

clean:         ## remove what was set up here
	rm -rf $(VENV) $(SDK)/node_modules $(SDK)/dist $(SDK)/out .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/out torture/out dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Jiyi needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Say which one: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(VENV)/core: pyproject.toml | $(BIN)/python
	@echo "Installing Jiyi into $(VENV) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev: pyproject.toml | $(BIN)/python
	@echo "Installing Jiyi and its test tools into $(VENV) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@ $(VENV)/core

$(VENV)/bench: pyproject.toml | $(BIN)/python
	@echo "Installing Jiyi and its benchmark tools into $(VENV) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group bench
	@touch $@ $(VENV)/core
