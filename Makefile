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

setup: $(READY)  ## make .venv with all dependencies, once

$(READY): setup.cfg pyproject.toml .ci/constraints.txt .ci/setup .ci/index.sh
	@PYTHON=$(PYTHON) .ci/setup

run: setup  ## make a dataset from the bundled sample, and train a small GLM on it
	$(BIN)/python -m pipelines.wudao --runner=DirectRunner --output build/wudao
	$(BIN)/python -m shards inspect build/wudao --doc 0
	rm -rf build/first
	$(BIN)/python -m trainer.train --data build/wudao --model tiny --length 128 --batch-size 16 \
	  --max-steps 30 --lr 2e-3 --log-every 5 --eval-every 15 --save build/first

test: setup  ## run the fast tests
	.ci/in-memory $(BIN)/python -m pytest -n auto -q -m "not slow and not nightly" --ignore tests/engines $(ARGS)

test-all: setup browser  ## run all tests except test-engines: kills and restarts, other processes, training
	.ci/in-memory $(BIN)/python -m pytest -n auto -q -m "not nightly" --ignore tests/engines $(ARGS)

nightly: setup browser engines  ## run tests that take hours: more kills and engines, a long soak, mutants
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

engines:  ## fetch an S3 server, Prism, Flink and Spark for test-engines (needs Go, Java, Maven)
	@.ci/engines

test-engines: setup engines  ## compare the bytes of all engines, and kill workers of Flink and Spark
	.ci/in-memory $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "not nightly" tests/engines $(ARGS)

test-pythons: setup  ## compare the bytes of the wheel on all other installed Pythons from 3.11 on
	@.ci/pythons

soak: setup  ## compare random runs, kills and damage with an oracle (MINUTES=30, SEED=0, ARGS="--only kill")
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED) $(ARGS)

lint: setup  ## check style, types, imports between packages, and banned phrases
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

format: setup  ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure rules, memory, dedup, loaders (ARGS="--only loaders", BENCH_MB=…)
	$(BIN)/python -m tests.bench $(ARGS)

wheel:  ## build dist/corpusmill-….whl, for other machines; needs no .venv
	PYTHON=$(PYTHON) .ci/wheel

images: setup  ## check the Dockerfile, and build both images, or try the worker's steps in a clean Debian
	@.ci/images

clean:  ## remove .venv and all outputs
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
