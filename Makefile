# Two commands: make run, make test. What each variable does: docs/configuration.md.
PYTHON ?= python3
VAR := $(or $(PGQUEUE_VAR),var)
BIN := .venv/bin

.PHONY: setup run test reset clean vendor bench-console bench-engine bench-peers bench-tuning bench-chaos bench-pipeline wire-dump screenshots
.DEFAULT_GOAL := run

setup: .venv/installed-history

run: .venv/installed
	@INSTALL_HISTORY=1 exec $(BIN)/python manage.py up

test: .venv/installed-dev
	@$(BIN)/pytest -q -m "not journey and not chaos and not spark and not fresh" -n 2 $(TESTS)

reset:
	@$(PYTHON) -m pgqueue_admin.embedded.reset $(VAR)

clean: reset
	rm -rf .venv node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

vendor:
	@scripts/vendor.sh

bench-console: .venv/installed-dev
	@$(BIN)/python -m bench.console

bench-engine: .venv/installed-dev
	@$(BIN)/python -m bench.engine

wire-dump: .venv/installed-dev
	@$(BIN)/python -m bench.wire $(VAR)/wire

bench-chaos: .venv/installed-dev
	@$(BIN)/python -m bench.chaos

.PHONY: bench-pipeline-chaos
bench-pipeline-chaos: .venv/installed-dev
	@$(BIN)/python -m bench.history_chaos

bench-peers: .venv/installed-dev
	@$(BIN)/python -m bench.peers

bench-pipeline: .venv/installed-dev
	@$(BIN)/python -m bench.pipeline

bench-tuning: .venv/installed-dev
	@$(BIN)/python -m bench.tuning

.venv/installed: requirements.txt constraints.txt | .venv/bin/python
	@echo "Installing what requirements.txt pins (the first time takes a minute or two) ..."
	@sed '/^# History/,$$d' requirements.txt > .venv/first.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .venv/first.txt -c constraints.txt
	@touch $@

.venv/installed-history: .venv/installed
	@echo "Installing Spark, for history (491 MB; a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $@

.venv/installed-dev: requirements-dev.txt .venv/installed-history
	@echo "Installing what requirements-dev.txt pins ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c constraints.txt
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) must be Python 3.11 or newer with venv (Debian: apt-get install python3-venv), or set PYTHON=."; exit 1; }
	@$(PYTHON) -m venv .venv

screenshots: .venv/installed-dev
	@SCREENSHOTS=1 $(BIN)/pytest -q -m journey tests/journeys
