# Everything runs in .venv; `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
MINUTES ?= 30
SEED ?= 0
SAMPLE ?= 200
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup run test test-all nightly engines test-engines test-pythons soak golden mutants browser lint format bench wheel images clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(READY)  ## make .venv with everything in it, once

$(READY): setup.cfg pyproject.toml .ci/constraints.txt .ci/setup .ci/index.sh
	@PYTHON=$(PYTHON) .ci/setup

run: setup  ## the bundled sample from text to shards to a short training
	$(BIN)/python -m pipelines.wudao --runner=DirectRunner --output build/wudao
	$(BIN)/python -m shards inspect build/wudao --doc 0
	rm -rf build/first
	$(BIN)/python -m trainer.train --data build/wudao --model tiny --length 128 --batch-size 16 \
	  --max-steps 30 --lr 2e-3 --log-every 5 --eval-every 15 --save build/first

test: setup  ## the fast tests
	.ci/in-memory $(BIN)/python -m pytest -n auto -q -m "not slow and not nightly" --ignore tests/engines $(ARGS)

test-all: setup browser  ## all tests except test-engines: kills and restarts, other processes, training
	.ci/in-memory $(BIN)/python -m pytest -n auto -q -m "not nightly" --ignore tests/engines $(ARGS)

nightly: setup browser engines  ## tests that take hours: more kills and engines, a long soak, mutants
	.ci/in-memory $(BIN)/python -m pytest -n auto -q -m nightly --ignore tests/engines $(ARGS)
	.ci/in-memory $(BIN)/python -m pytest -n 2 --dist loadfile -q -m nightly tests/engines $(ARGS)
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED)
	$(BIN)/python -m tests.mutants --sample $(SAMPLE) --seed $(SEED)

golden: setup  ## compare whole commands with saved figures (UPDATE=1 saves new ones, ARGS=NAME)
	UPDATE=$(UPDATE) .ci/in-memory $(BIN)/python -m pytest -n auto -q tests/golden $(if $(ARGS),-k "$(ARGS)")

mutants: setup  ## find one-line faults that no test notices (SAMPLE=200, SEED=0, ARGS=FOLDER)
	$(BIN)/python -m tests.mutants --sample $(SAMPLE) --seed $(SEED) $(ARGS)

browser:  ## install Chromium for the tests that open pages, where this machine allows it
	@.ci/browser

engines:  ## fetch what test-engines needs: an S3 server, Prism, Flink, Spark (needs Go, Java, Maven)
	@.ci/engines

test-engines: setup engines  ## the same bytes on every engine, kills on clusters of Flink and Spark
	.ci/in-memory $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "not nightly" tests/engines $(ARGS)

test-pythons: setup  ## the wheel on every other Python here from 3.11 on: the same bytes
	@.ci/pythons

soak: setup  ## random runs, kills and damage against an oracle (MINUTES=30, SEED=0, ARGS="--only kill")
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED) $(ARGS)

lint: setup  ## style, types, imports between packages, and banned phrases
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

format: setup  ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure: rules, memory, dedup, loaders (ARGS="--only loaders", BENCH_MB=…)
	$(BIN)/python -m tests.bench $(ARGS)

wheel:  ## build dist/corpusmill-….whl, for other machines; needs no .venv
	PYTHON=$(PYTHON) .ci/wheel

images: setup  ## check the Dockerfile, and build both images, or try the worker's steps in a clean Debian
	@.ci/images

clean:  ## remove .venv and everything made
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
