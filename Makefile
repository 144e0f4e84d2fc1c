# What the machine needs: Python 3.11 or newer, make. Everything else is put into .venv/ and frontend/.
TORCH ?= cpu
export TORCH
PY = .venv/bin/python
INSTALL = @sh setup/python.sh setup/install.py

.PHONY: setup demo test lint fmt schema bench

setup:            ## everything, development tools included
	$(INSTALL) dev

demo:             ## the shipped study from stimuli to report; ARGS="--participants 40 --no-serve"
	$(INSTALL) demo
	@$(PY) manage.py demo $(ARGS)

test:             ## lint, types, Python on both databases, TypeScript, browser; PARTS="lint pure" for some
	$(INSTALL) dev
	@$(PY) setup/prove.py $(PARTS)

lint:
	$(INSTALL) dev
	@$(PY) setup/prove.py lint types

fmt:
	$(INSTALL) dev
	@$(PY) -m ruff check --fix-only --quiet . && $(PY) -m ruff format .

schema:           ## the OpenAPI document, and the TypeScript types of the wire made from it
	$(INSTALL) tools
	@mkdir -p var && $(PY) manage.py spectacular --validate --fail-on-warn --file var/schema.yml
	@PATH="$(CURDIR)/.venv/bin:$$PATH" npm --prefix frontend run --silent wire

bench:            ## measured, never asserted; ARGS are the bench's
	$(INSTALL) dev
	@$(PY) -m benchmarks $(ARGS)
