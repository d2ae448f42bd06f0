# The commands of the README. Everything lives in .venv; nothing is installed into the user's own Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Elsewhere than on a machine with a CPU wheel at hand: make TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
TORCH_FROM := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.PHONY: demo test test-all lint setup results clean

demo: setup
	$(BIN)/kernelwright optimize examples/softmax.py

test: lint
	$(BIN)/pytest -m "not slow"

test-all: lint
	$(BIN)/pytest

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
