# Builds, tests and releases the source tree. Needs Python (3.10 or later, with its headers), a C compiler
# and PyPI, and installs everything else into .venv. The sanitizers need clang with its compiler-rt: GCC's
# thread sanitizer does not support fences, and its undefined-behaviour sanitizer misreads thread-locals.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc)
# Processes that run Python tests: more than twice as many, since many tests wait for programs.
WORKERS ?= $(shell echo $$(( 2 * $(JOBS) + 1 )))
FUZZ_SECONDS ?= 30
FUZZ_SEGMENTS ?= 1000000
SOAK_SECONDS ?= 1200
HOSTILE_SECONDS ?= 600
# Those that are there try the wheels.
PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14 python3.14t
TORCH := torch==2.13.0
export PATH := $(abspath $(BIN)):$(PATH)
# Tests start hundreds of programs, and each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

NATIVE := $(shell find native -type f -not -path '*/__pycache__/*') pyproject.toml
PYTHON_SOURCES := $(shell find agent exporters -name '*.py')
C_SOURCES := $(shell find native tests -name '*.[ch]' -o -name '*.cpp')

# Some kernels map memory at random addresses that ThreadSanitizer does not support.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help venv run check test test-aarch64 test-c test-cuda test-free-threaded test-long test-python test-python-long types format lint asan tsan fuzz fuzz-agent soak hostile scale bench dashboards stubs suites metrics-doc protocol torch-matrix try-wheels wheels clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 14

venv: $(VENV)/installed ## .venv with the package, editable, and all development tools

run: .venv-run/installed ## observe an unmodified scikit-learn training, from end to end
	.venv-run/bin/python -m opscope.demo

check: lint $(VENV)/torch ## to run before each commit: a few minutes
	$(call beside,mypy,test-c C_TESTS="--label-exclude slow")
	$(call side_by_side,not slow and not external)

test: lint $(VENV)/torch ## tests, types by mypy, and lint; stops at the first failure
	$(call beside,mypy,test-c)
	$(MAKE) test-python

# A type checker uses one processor; other targets use what it leaves. Waits for both; fails if one fails.
beside = @echo "$(BIN)/$(1), beside $(2)"; $(BIN)/$(1) & checker=$$!; $(MAKE) $(2); others=$$?; \
    wait $$checker && exit $$others

test-c: $(VENV)/installed ## only the C tests
	cmake --build build/editable
	$(CTEST) --test-dir build/editable $(C_TESTS)

test-long: $(VENV)/installed $(VENV)/torch ## types by pyright, the Python tests that make test leaves out, more examples
	$(call beside,pyright,test-python-long)

test-python-long: export OPSCOPE_TEST_EXAMPLES = 5
test-python-long: $(VENV)/installed $(VENV)/torch
	$(call side_by_side,(long or examples or hypothesis) and not external)
	$(call twice,alone and long,$(ALONE))

test-aarch64: $(VENV)/tools ## the tests on aarch64, cross-built and emulated: a quarter of an hour
	$(BIN)/python -m tests.cross.aarch64

# PYTHON_CUDA names an interpreter that has PyTorch for CUDA, opscope and pytest.
PYTHON_CUDA ?= $(BIN)/python
test-cuda: ## the tests of PyTorch on a GPU
	@$(PYTHON_CUDA) -c 'import sys, torch; torch.cuda.is_available() or sys.exit("PyTorch finds no GPU")'
	$(PYTHON_CUDA) -m pytest -q tests/bridges/test_torch_cuda.py

# FREE_THREADED names the interpreter; without it, python3.14t on PATH, or one built from source.
test-free-threaded: $(VENV)/tools ## the tests on CPython 3.14 without the GIL: ten minutes
	$(BIN)/python -m tests.cross.free_threaded $(FREE_THREADED)

test-python: $(VENV)/installed $(VENV)/torch ## only the Python tests
	$(call side_by_side,not external and not long)
	$(call twice,alone and not long,$(ALONE))

types: $(VENV)/installed $(VENV)/torch ## mypy and pyright, both at the same time
	@echo "$(BIN)/mypy and $(BIN)/pyright"
	@$(BIN)/pyright & pyright=$$!; $(BIN)/mypy; mypy=$$?; wait $$pyright && exit $$mypy

format: $(VENV)/installed ## format the C and Python files as lint checks them
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/ruff format

lint: $(VENV)/installed ## ruff and clang-format, checks and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@echo "$(BIN)/clang-format --dry-run --Werror (all C files)"
	@printf '%s\0' $(C_SOURCES) | xargs -0 -n 50 -P $(JOBS) $(BIN)/clang-format --dry-run --Werror

# The files with tests that run one by one.
ALONE = $(shell grep -rl "pytest\.mark\.alone" tests --include="test_*.py")

# Runs tests in parallel, file by file, slow ones first (tests/conftest.py). Those that compare measured times come
# later, one by one.
side_by_side = $(call twice,$(1) and not alone,--numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder)

# Failed tests run a second time, alone: a fault fails again, a disturbance by other load does not. Prints both
# runs. Repeats a run only if it ended with failed tests (exit status 1).
twice = $(BIN)/python -m pytest -m "$(1)" $(2) || { [ $$? = 1 ] && echo "The failed tests again:" && \
    $(BIN)/python -m pytest -m "$(1)" --last-failed --last-failed-no-failures none; }

# A failed test runs a second time, as for Python. Before LLVM 17 the address sanitizer's allocator can also
# hang in the child of a program with threads.
CTEST = ctest --parallel $(JOBS) --output-on-failure --no-tests=error --repeat until-pass:2

asan: build/asan/build.ninja ## the C tests with address, leak and undefined-behaviour sanitizers
	cmake --build build/asan
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
	$(CTEST) --test-dir build/asan

tsan: build/tsan/build.ninja ## the C tests with the thread sanitizer
	cmake --build build/tsan
	TSAN_OPTIONS=die_after_fork=0:second_deadlock_stack=1:atexit_sleep_ms=0 \
	$(FIXED_ADDRESSES) $(CTEST) --test-dir build/tsan

fuzz: build/fuzz/build.ninja ## the fuzz targets, FUZZ_SECONDS (30) each, JOBS at a time
	cmake --build build/fuzz
	@find build/fuzz/tests -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x -print0 | \
	    xargs -0 -n 1 -P $(JOBS) sh -c '$(FUZZ_ONE)' sh

# Shows the whole output of a target that finds a fault, and stops those that have not begun.
FUZZ_ONE = log=$$1.log; corpus=build/corpus/$${1\#\#*/}; mkdir -p $$corpus; \
    $$1 -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $$corpus >$$log 2>&1 || { cat $$log; exit 255; }; \
    echo "$$1, $(FUZZ_SECONDS) s, $$(grep -o "number_of_executed_units:.*" $$log)"

fuzz-agent: $(VENV)/installed ## fuzz the host agent's readers: FUZZ_SEGMENTS in all, then FUZZ_SECONDS; with atheris if available
	-$(BIN)/python -m pip install --quiet atheris
	mkdir -p build
	PYTHONPATH=. $(BIN)/python tests/host/fuzz_segments.py --segments $(FUZZ_SEGMENTS) \
	    --processes $(JOBS) --progress build/fuzz-segments.jsonl
	PYTHONPATH=. $(BIN)/python tests/host/fuzz_host.py $(FUZZ_SECONDS)
	PYTHONPATH=. $(BIN)/python tests/host/fuzz_directories.py $(FUZZ_SECONDS)

soak: $(VENV)/installed ## start, fork and kill processes and agents at random, SOAK_SECONDS
	OPSCOPE_TEST_CHURN=100000 OPSCOPE_TEST_LIMIT_S=1800 $(BIN)/python -m pytest -o faulthandler_timeout=2000 \
	    tests/host/test_churn.py
	PYTHONPATH=. $(BIN)/python tests/soak/soak.py --seconds $(SOAK_SECONDS)

hostile: $(VENV)/installed ## 200 clients that misbehave, at a model server, HOSTILE_SECONDS
	$(BIN)/python -m tests.serving.hostile $(HOSTILE_SECONDS)

scale: $(VENV)/installed ## a thousand simulated hosts on a real Prometheus; SCALE="--hosts 100" for fewer
	$(BIN)/python -m tests.dashboards.scale $(SCALE)

bench: .venv-bench/installed ## measure the costs of the package, installed from a wheel
	.venv-bench/bin/opscope bench

dashboards: $(VENV)/installed ## generate the Grafana dashboards from dashboards/source
	$(BIN)/python -m dashboards.source

stubs: $(VENV)/installed ## generate the type stubs of the tensor core's operators
	$(BIN)/python native/tensor/python/generate_stubs.py > build/_operators.pyi
	mv build/_operators.pyi agent/opscope/tensor/_operators.pyi

metrics-doc: $(VENV)/installed ## generate exporters/METRICS.md from the table of metrics
	$(BIN)/python -m opscope_exporters.reference > build/METRICS.md
	mv build/METRICS.md exporters/METRICS.md

protocol: $(VENV)/installed ## compile the model server's protocol from its .proto file
	$(BIN)/python -m grpc_tools.protoc -Iagent/opscope/serving \
	    --descriptor_set_out=agent/opscope/serving/inference.binpb inference.proto

suites: .venv-wide/installed ## the own tests of NumPy, SciPy, pandas and others, attached: hours; SUITES="pandas" for fewer
	.venv-wide/bin/python -m tests.suites $(SUITES)

torch-matrix: $(VENV)/installed ## the PyTorch bridge on each version; VERSIONS="2.9.1 2.12.1" for fewer
	$(BIN)/python -m tests.torch_versions.matrix $(VERSIONS)

wheels: $(VENV)/tools ## the files of a release, in dist: source, and wheels for every platform
	$(BIN)/python -m pip install --quiet --group wheels
	$(BIN)/python -m native.cross.wheels dist
	@set -e; for python in $(PYTHONS); do \
	    if $$python -c "" 2>/dev/null; then $$python native/cross/try_wheel.py dist; \
	    else echo "not tried with $$python, which this machine lacks"; fi; \
	done

try-wheels: $(VENV)/tools ## try the wheels in dist on CPython 3.14 and 3.15 and on musl, which it fetches
	$(BIN)/python -m pip install --quiet --group wheels
	$(BIN)/python -m native.cross.other_pythons dist

clean: ## remove all build output and environments
	rm -rf build dist $(VENV) .venv-bench .venv-run .venv-wide .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find agent exporters dashboards tests native -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- environments -----------------------------------------------------------------------------

$(VENV)/tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.12" "cffi>=2.1" cmake ninja
	touch $@

$(VENV)/installed: $(VENV)/tools $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-build-isolation --group test --group dashboards \
	    --editable ".[all,demo]" --config-settings=build-dir=build/editable \
	    --config-settings=cmake.define.OPSCOPE_WERROR=ON \
	    --config-settings=cmake.define.OPSCOPE_BUILD_TESTS=ON --config-settings=build.targets="opscope;_native;opscope_marks;_tensor"
	touch $@

$(VENV)/torch: $(VENV)/tools
	$(BIN)/python -m pip install --quiet $(TORCH)
	touch $@

# Only what the demonstration runs, so that it installs quickly: without the tensor core, and without
# compiling bytecode in advance.
.venv-run/installed: $(NATIVE) $(PYTHON_SOURCES)
	$(PYTHON) -m venv .venv-run
	.venv-run/bin/python -m pip install --quiet --no-compile ".[demo]" \
	    --config-settings=build-dir=build/run --config-settings=build.targets="opscope;_native;opscope_marks"
	touch $@

# An editable install slows the start of every Python process, so costs are measured without one.
.venv-bench/installed: $(VENV)/tools $(NATIVE) $(PYTHON_SOURCES)
	$(PYTHON) -m venv .venv-bench
	rm -rf build/wheels
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheels . \
	    --config-settings=build-dir=build/wheel
	.venv-bench/bin/python -m pip install --quiet $(TORCH)
	.venv-bench/bin/python -m pip install --quiet --force-reinstall --no-deps build/wheels/*.whl
	.venv-bench/bin/python -m pip install --quiet "$$(echo build/wheels/*.whl)[all]"
	touch $@

# All packages with a bridge except PyTorch.
.venv-wide/installed: $(VENV)/tools $(NATIVE) $(PYTHON_SOURCES)
	$(PYTHON) -m venv .venv-wide
	rm -rf build/wide
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wide . \
	    --config-settings=build-dir=build/wheel
	.venv-wide/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-wide/bin/python -m pip install --quiet --group wide
	.venv-wide/bin/python -m pip install --quiet --force-reinstall --no-deps build/wide/*.whl
	.venv-wide/bin/python -m pip install --quiet "$$(echo build/wide/*.whl)[agent]"
	touch $@

# ---- C builds: one folder for each kind of check ----------------------------------------------------

C_BUILD = cmake -S native -B $(@D) -G Ninja -DOPSCOPE_BUILD_PYTHON=OFF -DOPSCOPE_BUILD_TESTS=ON \
    -DOPSCOPE_WERROR=ON

# One CPU level is enough: the sanitizers find the same faults at each.
SANITIZED = -DCMAKE_C_COMPILER=clang -DOPSCOPE_CPU_LEVELS=OFF

build/asan/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=address,undefined

build/tsan/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=thread

build/fuzz/build.ninja: $(VENV)/tools
	$(C_BUILD) $(SANITIZED) -DOPSCOPE_SANITIZER=fuzzer,address,undefined
