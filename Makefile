# What the machine needs: Python 3.11 or newer, make. Everything else is put into .venv/ and frontend/.
TORCH ?= cpu
export TORCH
# Some machines set this. Then every process would compile its libraries again.
unexport PYTHONDONTWRITEBYTECODE
PY = .venv/bin/python
INSTALL = @sh setup/python.sh setup/install.py

help:             ## this list
	@sed -n 's/^\([a-z]*\): *## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16
	@echo "One study, its people, its money: .venv/bin/legible"

.PHONY: help setup demo test seconds prove pictures site lint fmt schema bench

setup:            ## everything, development tools included
	$(INSTALL) dev

demo:             ## the shipped study from stimuli to report; ARGS="--participants 240 --no-serve"
	$(INSTALL) demo
	@$(PY) manage.py demo $(ARGS)

test:             ## lint, types, Python, TypeScript, browser; PARTS="lint pure" for some, PARTS=fast while you work
	$(INSTALL) dev
	@$(PY) setup/suite.py $(PARTS)

seconds:          ## keeps what make test and make prove PARTS=long measured last, for their order and budget
	@for name in seconds long; do ! test -f var/$$name.txt || cp var/$$name.txt tests/$$name.txt; done

prove:            ## proofs of hours, with tables in docs/evidence/; PARTS="crashes recovery" for some, SEED=3
	$(INSTALL) dev
	@$(PY) setup/prove.py --seed $(or $(SEED),0) $(PARTS)

pictures:         ## those of README and docs, from the demo; every page of a participant, in var/pictures; STUDY=leaves
	$(INSTALL) dev
	@test -f var/demo/legible.sqlite3 || $(PY) manage.py demo --no-serve
	@LEGIBLE_VAR=var/demo $(PY) manage.py showcase
	@$(PY) manage.py gallery --trials
	@$(PY) manage.py screenshots $(or $(STUDY),wolf-or-husky) --all-windows --to var/pictures

site:             ## the documentation as a site with search, in var/site
	$(INSTALL) dev
	@mkdir -p var && $(PY) manage.py spectacular --format openapi-json --file var/schema.json
	@.venv/bin/sphinx-build -q -W --keep-going -c docs . var/site
	@echo "var/site/docs/index.html"

lint:             ## lint and types alone
	$(INSTALL) dev
	@$(PY) setup/suite.py lint types

fmt:              ## formats Python
	$(INSTALL) dev
	@$(PY) -m ruff check --fix-only --quiet . && $(PY) -m ruff format .

schema:           ## the OpenAPI document, and the TypeScript types of the wire made from it
	$(INSTALL) tools
	@mkdir -p var && $(PY) manage.py spectacular --validate --fail-on-warn --file var/schema.yml
	@PATH="$(CURDIR)/.venv/bin:$$PATH" npm --prefix frontend run --silent wire

bench:            ## measured, never asserted; ARGS are the bench's
	$(INSTALL) dev
	@$(PY) -m benchmarks $(ARGS)
