# SPDX-License-Identifier: Apache-2.0
# The commands of README.md. Each installs what it needs and stops at the first failure.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
.PHONY: all demo test test-unit bench tidy fresh format install

all: install
	tools/build.sh release

install:
	tools/install.sh

demo: install
	tools/demo.sh

test: install
	tools/test.sh

test-unit: install
	tools/build.sh dev
	ctest --test-dir build/dev -L unit -j $(JOBS) --output-on-failure

bench: install
	tools/bench.sh

tidy: install
	tools/tidy.sh --all

fresh: install
	tools/fresh.sh

format:
	git ls-files '*.cc' '*.h' | xargs clang-format-19 -i
