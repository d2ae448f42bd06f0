# The commands of the README. Everything lives in .venv; nothing is installed into the user's own Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# PyPI's torch for Linux brings 3 GB of CUDA along; the CPU build has an index of its own. Where pip is already told where to look
# (a mirror, a folder of wheels), that is left alone. Override with make TORCH_INDEX=...
OWN_SOURCES = $(shell $(PYTHON) -m pip config list 2>/dev/null | grep -E 'index-url|find-links')
TORCH_INDEX ?= $(if $(OWN_SOURCES),,https://download.pytorch.org/whl/cpu)
TORCH_FROM = $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

DEMO ?= causal_attention

.PHONY: demo test test-all lint setup results clean

demo: setup
	$(BIN)/kernelwright optimize examples/$(DEMO).py || [ $$? = 1 ]

test: lint
	$(BIN)/pytest -m "not slow" -n 2 --dist loadfile

test-all: lint
	$(BIN)/pytest -n 2 --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

results: setup
	$(BIN)/python scripts/results_cpu.py

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup_system.sh
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Kernelwright needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@sh scripts/setup_system.sh
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(TORCH_FROM) torch setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) kernelwright-results
