# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
DEMO := $(VENV)/.demo-stamp
TEST := $(BIN)/python setup/test.py

.PHONY: setup demo quick test test-extra check docs soak bench packages lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml setup/packages-demo.txt setup/packages-test.txt setup/torch.txt setup/porcupine.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh test $(VENV)
	touch $@ $(DEMO)

# A slice of the set-up: no PyTorch, no browser, no cross-compiler.
$(DEMO): setup/demo.lock pyproject.toml setup/packages-demo.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh demo $(VENV)
	touch $@

demo: $(DEMO)
	$(BIN)/harness demo

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
	$(BIN)/python -m pytest tests/unit --quick --timed=without -n 3 --dist worksteal -q

check: setup
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
docs: setup
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

# Re-pins every dependency. Needs `uv` on the path.
lock:
	uv pip compile --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-emit-package torch --no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --extra demo --generate-hashes \
		--no-emit-index-url --no-annotate --no-header -c requirements.lock pyproject.toml -o setup/demo.lock

clean:
	rm -rf $(VENV) $(VENV)-packages build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
