# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# What only waits for what comes about shares the cores, the longest first; what deals with real sound, serial lines and
# moments has them to itself. Both run, and either fails. With three at a time, times over a broker no longer hold.
WAITING := new_board board_refusals engine_life engine_kill mqtt_driver mqtt_faults mqtt_security mqtt_embedded mqtt_hermes
SHARED := $(WAITING:%=tests/conformance/test_%.py) tests/conformance/rating tests/conformance/scoring \
	tests/conformance/annotation tests/conformance/understanding tests/conformance/offline tests/dashboard tests/unit
ENGINES := tests/dashboard/test_with_engine.py tests/dashboard/test_wake_with_engine.py
TEST := $(BIN)/python -m pytest $(SHARED) $(patsubst %,--ignore=%,$(ENGINES)) \
	-n 2 --dist loadfile --no-loadscope-reorder; shared=$$?; \
	$(BIN)/python -m pytest tests/conformance $(ENGINES) $(patsubst %,--ignore=%,$(filter tests/conformance/%,$(SHARED))) \
	&& exit $$shared

.PHONY: setup demo test check soak bench lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml setup/packages.txt setup/torch.txt setup/install.sh
	PYTHON=$(PYTHON) sh setup/install.sh $(VENV)
	touch $@

demo: setup
	$(BIN)/harness demo

test: setup
	$(TEST)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python setup/module_sizes.py
	$(TEST)

soak: setup
	$(BIN)/python -m pytest -m soak --timeout=7200

bench: setup
	for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

# Re-pins every dependency. Needs `uv` on the path.
lock:
	uv pip compile --universal --python-version 3.11 --all-extras --generate-hashes \
		--no-emit-package torch --no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
