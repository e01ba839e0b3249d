# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
DEMO := $(VENV)/.demo-stamp
CHECK := $(VENV)/.check-stamp
TRANSFORMER := $(VENV)-transformer/.setup-stamp
TEST := $(BIN)/python setup/test.py

.PHONY: setup setup-check demo quick test test-extra test-transformer check docs soak bench packages lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml setup/packages-demo.txt setup/packages-test.txt setup/porcupine.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh test $(VENV)
	touch $@ $(DEMO)

# The linters and what builds the documentation.
setup-check: $(CHECK)

$(CHECK): $(STAMP) setup/check.lock
	PYTHON=$(PYTHON) sh setup/install.sh check $(VENV)
	touch $@

# PyTorch has an environment of its own.
$(TRANSFORMER): setup/transformer.lock setup/torch.txt pyproject.toml setup/packages-demo.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh transformer $(VENV)-transformer
	touch $@

# A slice of the set-up: no browser, no cross-compiler.
$(DEMO): setup/demo.lock pyproject.toml setup/packages-demo.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh demo $(VENV)
	touch $@

demo: $(DEMO)
	$(BIN)/harness init demo

test: setup
	$(TEST)

# Engines that `make setup` leaves out, and the message bus of OpenVoiceOS. Downloads them; they take 400 MB.
test-extra: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/extra/engines -r setup/extra.txt
	$(PYTHON) -m venv build/extra/bus
	build/extra/bus/bin/python -m pip install --quiet --disable-pip-version-check ovos-messagebus==0.0.10
	PATH="$(CURDIR)/build/extra/bus/bin:$$PATH" PYTHONPATH="$(CURDIR)/build/extra/engines" $(BIN)/python -m pytest tests/conformance -m extra

# What a contributor runs all day: no sound, no network, no browser, nothing slow.
quick: setup
	$(BIN)/python -m pytest tests/unit --quick -n 2 --dist worksteal -q

# The tests that need PyTorch; `make test` leaves them out.
test-transformer: $(TRANSFORMER)
	$(VENV)-transformer/bin/python -m pytest -m transformer -q $$(grep -rl --include='test_*.py' mark.transformer tests)

check: setup-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python setup/shape.py
	$(BIN)/codespell
	$(BIN)/python setup/prose.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(TEST)

# The documentation as a site in build/site; fails on a broken link or anchor. It is built offline.
docs: setup-check
	$(BIN)/python setup/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

soak: setup
	$(BIN)/python -m pytest -m soak --timeout=7200
	EXAMPLES=2000 EXPLORE=1 $(BIN)/python -m pytest tests/unit -m "hypothesis and not hardware" --timeout=7200

# CI runs the smallest form of each: make bench SMALLEST=1. All run, also after a failure.
bench: setup
	@failed=; for b in benchmarks/bench_*.py; do echo "== $$b"; $(BIN)/python $$b || failed="$$failed $$b"; done; \
	[ -z "$$failed" ] || { echo "bench: failed:$$failed" >&2; exit 1; }

# The package as `pip install` gives it, also with another Python: make packages PYTHON=python3.13. Downloads its dependencies.
packages: $(STAMP)
	$(PYTHON) -m venv $(VENV)-packages
	$(VENV)-packages/bin/python -m pip install --quiet setuptools ".[lab]"
	HARNESS_PYTHONS=$(VENV)-packages/bin/python $(BIN)/python -m pytest tests/conformance/test_installed.py

PINNED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
# Re-pins every dependency. Needs `uv` on the path.
lock:
	uv pip compile $(PINNED) --extra test pyproject.toml -o requirements.lock
	uv pip compile $(PINNED) --extra check -c requirements.lock pyproject.toml -o setup/check.lock
	uv pip compile $(PINNED) --extra demo -c requirements.lock pyproject.toml -o setup/demo.lock
	uv pip compile $(PINNED) --extra test-transformer --no-emit-package torch -c requirements.lock \
		pyproject.toml -o setup/transformer.lock

clean:
	rm -rf $(VENV) $(VENV)-packages $(VENV)-transformer build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
