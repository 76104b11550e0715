# Two commands: make run, make test. What each variable does: docs/reference/configuration.md.
PYTHON ?= python3
VAR := $(or $(PGQUEUE_STATE_DIR),var)
BIN := .venv/bin
INSTALL = $(BIN)/python scripts/install.py --require-hashes
# Some images set it: each process would then compile the product anew, which is a third of its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reference setup run test test-slow test-engine test-console test-history test-changed test-sqlserver reset clean vendor bench-console bench-engine bench-peers bench-tuning bench-chaos bench-history bench-lease bench-outbox bench-pressure bench-retry bench-failures wire-dump screenshots
.DEFAULT_GOAL := run

setup: .venv/installed-history

run: .venv/installed
	@PGQUEUE_INSTALL_HISTORY=1 exec $(BIN)/python manage.py up

# Rooms whose tests start, cut and kill processes of their own, or write months of files: .ci/run has them as a step.
SLOW := tests/demo tests/history tests/hostile tests/lease tests/live tests/outbox tests/services tests/workers
ROOMS := $(sort $(patsubst %/,%,$(dir $(wildcard tests/*/test_*.py))))
TESTS := $(filter-out $(SLOW) tests/journeys tests/installation,$(ROOMS))

# Four processes keep two processors busy where nothing runs beside them; AT_ONCE= says otherwise.
# KEEP=1: each process keeps its PostgreSQL and the templates for the next run of this checkout.
test: .venv/installed-dev
	@PGQUEUE_TEST_KEEP=$(KEEP) $(BIN)/pytest -q -m "not journey and not chaos and not spark and not fresh and not pg_cron and not mariadb" -n $(or $(AT_ONCE),4) --dist loadgroup $(TESTS)

# Whether a SQL Server holds what is asked of it: PGQUEUE_TEST_MSSQL_DSN=mssql://user:password@host/master names one.
test-sqlserver: .venv/installed-dev
	@$(BIN)/python scripts/sqlserver.py

test-slow:
	@$(MAKE) --no-print-directory test TESTS="$(SLOW)" AT_ONCE=3

test-engine:
	@$(MAKE) --no-print-directory test TESTS="tests/dialects tests/lease tests/outbox tests/transport"

test-console:
	@$(MAKE) --no-print-directory test TESTS="tests/admin tests/alerts tests/api tests/console tests/models tests/services"

test-history:
	@$(MAKE) --no-print-directory test TESTS=tests/history

# Of what differs from where origin/main was left, or from BASE.
test-changed: TESTS = $(shell $(PYTHON) scripts/changed.py $(BASE))
test-changed:
	@if [ -n "$(TESTS)" ]; then $(MAKE) --no-print-directory test TESTS="$(TESTS)"; else echo "No test is about what changed."; fi

reset:
	@$(PYTHON) -m pgqueue_admin.embedded.reset $(VAR)

clean: reset
	rm -rf .venv node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

reference: .venv/installed
	@$(BIN)/python scripts/reference.py

vendor:
	@scripts/vendor.sh

bench-console: .venv/installed-dev
	@$(BIN)/python -m bench.console

bench-engine: .venv/installed-dev
	@$(BIN)/python -m bench.engine

bench-lease: .venv/installed-dev
	@$(BIN)/python -m bench.lease

bench-outbox: .venv/installed-dev
	@$(BIN)/python -m bench.outbox

bench-retry: .venv/installed-dev
	@$(BIN)/python -m bench.retry

bench-failures: .venv/installed-dev
	@$(BIN)/python -m bench.failures

bench-pressure: .venv/installed-dev
	@$(BIN)/python -m bench.pressure

wire-dump: .venv/installed-dev
	@$(BIN)/python -m bench.wire $(VAR)/wire

bench-chaos: .venv/installed-dev
	@$(BIN)/python -m bench.chaos
	@PGQUEUE_TEST_CHAOS_MESSAGES=$${MESSAGES:-20000} $(BIN)/pytest -q -n 0 -m chaos tests/lease/test_crashes.py tests/outbox/test_crashes.py tests/outbox/test_two_phase_crashes.py tests/services/test_staged_retry_killed.py

.PHONY: bench-history-chaos
bench-history-chaos: .venv/installed-dev
	@$(BIN)/python -m bench.history_chaos

bench-peers: .venv/installed-dev
	@$(BIN)/python -m bench.peers

bench-history: .venv/installed-dev
	@$(BIN)/python -m bench.history

bench-tuning: .venv/installed-dev
	@$(BIN)/python -m bench.tuning

.venv/installed: requirements.lock requirements-embedded.lock | .venv/bin/python
	@echo "Installing what requirements.lock pins (the first time takes a minute or two) ..."
	@$(INSTALL) -r requirements.lock -r requirements-embedded.lock
	@touch $@

.venv/installed-history: requirements-history.lock .venv/installed
	@echo "Installing Spark, for history (491 MB; a minute or two) ..."
	@$(INSTALL) -r requirements-history.lock
	@touch $@

.venv/installed-dev: requirements-dev.lock .venv/installed-history
	@echo "Installing what requirements-dev.lock pins ..."
	@$(INSTALL) -r requirements-dev.lock
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) must be Python 3.11 or newer with venv (Debian: apt-get install python3-venv), or set PYTHON=."; exit 1; }
	@$(PYTHON) -m venv .venv

screenshots: .venv/installed-dev
	@SCREENSHOTS=1 $(BIN)/pytest -q -m journey tests/journeys
