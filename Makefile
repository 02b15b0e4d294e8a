# Everything a newcomer runs. On a fresh Debian or Ubuntu: `make demo`, then `make test`. No target needs root.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard netsandbox/backends/*/native/*.c netsandbox/backends/*/native/*.h netsandbox/cli/native/*.c interpose/src/*.c interpose/src/*.h)
BUILT_FROM := pyproject.toml $(wildcard interpose/*.py interpose/cross/*.h) $(NATIVE)
SCRIPTS := scripts/demo scripts/other-pythons scripts/kernels/run bench/run bench/soak
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# Tests of sessions wait about half of their time.
WORKERS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN) / 2)))

.PHONY: help demo test test-kernels lint bench fuzz soak release macos-library macos-wheel docs man venv clean deps-demo deps-test deps-kernels

help:
	@echo 'make demo    an install that works, a host refused, a DNS tunnel to nowhere, the log, two servers on one port'
	@echo 'make test    lint, every test this machine can run, the smoke tests with its other Pythons'
	@echo 'make test-kernels    doctor and the backends on Linux 6.1, 6.12 and arm64, in emulated machines; about ten minutes'
	@echo 'make lint    ruff, mypy, import-linter'
	@echo 'make fuzz    the property tests with a hundred and more times as many examples; a million inputs to inspection'
	@echo 'make bench   the figures of docs/performance.md, beside its peers; about fifteen minutes'
	@echo 'make soak    the promises of a session'\''s life, a thousand times each'
	@echo 'make release    wheels that need no compiler, for Linux and Macs, with checksums and notes, in dist; on any system'
	@echo 'make macos-library    the preload library for Macs, both architectures, into build/macos; on any system'
	@echo 'make macos-wheel      the whole of netsandbox for Macs, as a wheel in dist; on any system'
	@echo 'make docs    the generated pages: tables of keys, their JSON Schema, tests of attacks and invariants, the manual page'
	@echo 'make venv    the environment in .venv, with the tools for tests'
	@echo 'make clean   remove what the others made'

demo: deps-demo $(VENV)/.product
	@$(BIN)/python scripts/demo

# A file's tests run together: they share what is made once for the file. pytest keeps the bytecode of the tests even where the
# environment says that Python keeps none: compiling it takes 15 seconds, which each worker of a new clone would need. So it is
# made beside the linters, which use one core. So is the C library of the wheel that the tests build: zig compiles musl when
# it is asked for it the first time, and keeps it in its cache.
test: deps-test $(VENV)/.test
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q --collect-only >/dev/null 2>&1 & \
	NETSANDBOX_BUILD_FOR=manylinux_2_17_$$(uname -m) $(BIN)/python -m hatchling build -t wheel -d build >/dev/null 2>&1 & \
	$(MAKE) --no-print-directory lint; status=$$?; wait; exit $$status
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)
	$(BIN)/python scripts/other-pythons

# CASES='6.1-plain 6.12-yama-3' runs some; WRITE=1 writes what was seen into docs/kernels.md.
test-kernels: deps-kernels $(VENV)/.test
	@$(BIN)/python scripts/kernels/run $(CASES) $(if $(WRITE),--write)

lint: $(VENV)/.test
	$(BIN)/ruff check . $(SCRIPTS)
	$(BIN)/ruff format --check --quiet . $(SCRIPTS)
	$(BIN)/mypy
	$(BIN)/mypy -p tests.rig
	$(BIN)/mypy scripts/demo
	$(BIN)/mypy scripts/manual.py scripts/pages.py scripts/release.py
	$(BIN)/mypy scripts/attacks.py scripts/invariants.py scripts/backends.py
	MYPYPATH=scripts/kernels $(BIN)/mypy scripts/kernels/main.py scripts/kernels/hook.py
	MYPYPATH=scripts/kernels/guest $(BIN)/mypy scripts/kernels/guest/smoke.py scripts/kernels/guest/inside.py
	MYPYPATH=bench $(BIN)/mypy bench/main.py
	$(BIN)/lint-imports

fuzz: $(VENV)/.test
	HYPOTHESIS_PROFILE=deep NETSANDBOX_TEST_HANGS=0 $(BIN)/python -m pytest -q -m hypothesis -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

bench: $(VENV)/.test
	@PATH="$(CURDIR)/$(BIN):$$PATH" bench/run

soak: $(VENV)/.test
	@PATH="$(CURDIR)/$(BIN):$$PATH" bench/soak

macos-library: $(VENV)/.test
	@mkdir -p build/macos
	$(BIN)/python interpose/macos_library.py build/macos/libnetsandbox_interpose.dylib

# TAG and RELEASE_URL: what is released and where its files will be (.github/workflows/release.yml)
release: $(VENV)/.test
	$(BIN)/python scripts/release.py dist --tag "$(TAG)" --url "$(RELEASE_URL)"
	NETSANDBOX_RELEASE=dist $(BIN)/python -m pytest -q tests/integration/test_installs.py tests/test_release.py

# hatchling itself, not pip: what it needs is in the environment already
macos-wheel: $(VENV)/.test
	NETSANDBOX_BUILD_FOR=macos $(BIN)/python -m hatchling build -t wheel -d dist

docs: man
	$(BIN)/python scripts/pages.py docs/configuration.md netsandbox/config/netsandbox.schema.json docs/architecture.md
	$(BIN)/python scripts/attacks.py docs/attacks.md
	$(BIN)/python scripts/invariants.py docs/invariants.md
	$(BIN)/python scripts/backends.py docs/threat-model.md

man: $(VENV)/.product
	$(BIN)/python scripts/manual.py docs/netsandbox.1

venv: $(VENV)/.test

deps-demo:
	@scripts/install-deps demo

deps-test:
	@scripts/install-deps test

deps-kernels:
	@scripts/install-deps kernels

# Order only: the interpreter is looked for after the packages are there.
$(BIN)/python: | deps-demo
	@python=$$(scripts/find-python --with-venv) && $$python -m venv $(VENV)

$(VENV)/.product: $(BUILT_FROM) | $(BIN)/python
	@$(PIP) install -e .
	@touch $@

$(VENV)/.test: $(BUILT_FROM) | $(BIN)/python
	@$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.product

clean:
	rm -rf $(VENV) $(VENV)-3.* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f netsandbox/cli/native/netsandbox netsandbox/backends/broker/native/netsandbox-broker netsandbox/backends/namespaces/native/netsandbox-init netsandbox/backends/seatbelt/native/netsandbox-apply interpose/netsandbox_interpose/*.so interpose/netsandbox_interpose/*.dylib
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
