# Everything to do with the source tree. Needs Python (3.10 or later, with its headers), a C compiler
# and PyPI; all else comes into .venv. The sanitizers need clang with its compiler-rt: GCC's thread
# sanitizer does not know fences, and its undefined-behaviour sanitizer misreads thread-locals.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 30
SOAK_SECONDS ?= 1200
TORCH := torch==2.13.0
export PATH := $(abspath $(BIN)):$(PATH)

NATIVE := $(shell find native -type f) pyproject.toml

# Some kernels place memory where ThreadSanitizer does not look for it, unless told not to.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help venv run test test-c test-python types lint asan tsan fuzz fuzz-agent soak scale bench dashboards clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

venv: $(VENV)/installed ## .venv with the package, editable, and all that works on it

run: $(VENV)/installed ## observe an unmodified scikit-learn training, from end to end
	$(BIN)/python -m opscope.demo

test: test-c test-python types lint ## all tests, type checks and lint; stops at the first failure

test-c: build/c/build.ninja ## the C tests alone
	cmake --build build/c
	ctest --test-dir build/c --output-on-failure --no-tests=error

test-python: $(VENV)/installed $(VENV)/torch ## the Python tests alone
	$(BIN)/python -m pytest

types: $(VENV)/installed ## mypy and pyright
	$(BIN)/mypy
	$(BIN)/pyright

lint: $(VENV)/installed ## ruff, checks and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

asan: build/asan/build.ninja ## the C tests with address, leak and undefined-behaviour sanitizers
	cmake --build build/asan
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
	ctest --test-dir build/asan --output-on-failure --no-tests=error

tsan: build/tsan/build.ninja ## the C tests with the thread sanitizer
	cmake --build build/tsan
	TSAN_OPTIONS=die_after_fork=0:second_deadlock_stack=1 \
	$(FIXED_ADDRESSES) ctest --test-dir build/tsan --output-on-failure --no-tests=error

fuzz: build/fuzz/build.ninja ## the fuzz targets, FUZZ_SECONDS (30) each
	cmake --build build/fuzz
	@set -e; for target in $$(find build/fuzz/tests -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x); do \
	    corpus=build/corpus/$${target##*/}; mkdir -p $$corpus; \
	    echo "$$target, $(FUZZ_SECONDS) s"; \
	    $$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $$corpus; \
	done

fuzz-agent: $(VENV)/installed ## foreign bytes to the host agent, FUZZ_SECONDS; by atheris if it can be had
	-$(BIN)/python -m pip install --quiet atheris
	PYTHONPATH=. $(BIN)/python tests/agent/fuzz_host.py $(FUZZ_SECONDS)

soak: $(VENV)/installed ## processes and agents that live, fork and are killed at random, SOAK_SECONDS
	OPSCOPE_TEST_CHURN=100000 $(BIN)/python -m pytest -o faulthandler_timeout=1800 tests/agent/test_churn.py
	PYTHONPATH=. $(BIN)/python tests/soak/soak.py --seconds $(SOAK_SECONDS)

scale: $(VENV)/installed ## a thousand simulated hosts on a real Prometheus; SCALE="--hosts 100" for fewer
	$(BIN)/python -m tests.dashboards.scale $(SCALE)

bench: .venv-bench/installed ## measure what the package costs, as installed from a wheel
	.venv-bench/bin/opscope bench

dashboards: $(VENV)/installed ## the Grafana dashboards' JSON anew, from the code in dashboards/source
	$(BIN)/python -m dashboards.source

clean: ## remove what was built, the environments too
	rm -rf build dist $(VENV) .venv-bench .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find agent exporters dashboards tests native -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- environments -----------------------------------------------------------------------------

$(VENV)/tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.11" "cffi>=2.1" cmake ninja
	touch $@

$(VENV)/installed: $(VENV)/tools $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-build-isolation --group demo --group test --group dashboards \
	    --editable . --config-settings=build-dir=build/editable \
	    --config-settings=cmake.define.OPSCOPE_WERROR=ON
	touch $@

$(VENV)/torch: $(VENV)/tools
	$(BIN)/python -m pip install --quiet $(TORCH)
	touch $@

# An editable install slows the start of every Python process, so costs are measured without one.
.venv-bench/installed: $(VENV)/tools $(NATIVE) $(shell find agent exporters -name '*.py')
	$(PYTHON) -m venv .venv-bench
	rm -rf build/wheels
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheels . \
	    --config-settings=build-dir=build/wheel
	.venv-bench/bin/python -m pip install --quiet $(TORCH)
	.venv-bench/bin/python -m pip install --quiet --force-reinstall --no-deps build/wheels/*.whl
	.venv-bench/bin/python -m pip install --quiet build/wheels/*.whl
	touch $@

# ---- C builds: one folder for each kind of checking ------------------------------------------------

C_BUILD = cmake -S native -B $(@D) -G Ninja -DOPSCOPE_BUILD_PYTHON=OFF -DOPSCOPE_BUILD_TESTS=ON \
    -DOPSCOPE_WERROR=ON

build/c/build.ninja: $(VENV)/tools
	$(C_BUILD) -DCMAKE_BUILD_TYPE=Release

# What a sanitizer looks for is the same at every level of CPU.
SANITIZED = -DCMAKE_C_COMPILER=clang -DOPSCOPE_CPU_LEVELS=OFF

build/asan/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=address,undefined

build/tsan/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=thread

build/fuzz/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=fuzzer,address,undefined
