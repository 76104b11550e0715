"""Which databases handlers of managed endpoints may enlist: variables, a database each."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import django
django.setup()
from pgqueue_admin.models import Endpoint
from pgqueue_admin.workers.processes.endpoint_settings import of_row
outbox = of_row(Endpoint(name="Billing", transaction_mode="receive_only", outbox="optimistic")).outbox
print(outbox.databases, outbox.isolation)
"""


def test_each_variable_is_a_database_by_the_rest_of_its_name() -> None:
    """An empty one counts as unset; the isolation is the endpoint's own."""
    given = {"PGQUEUE_OUTBOX_URL_STOCK": "postgresql://stock-host/stock", "PGQUEUE_OUTBOX_URL_LEDGER": ""}
    given["DJANGO_SETTINGS_MODULE"] = "pgqueue_admin.config.worker_settings"
    asked = subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env={**os.environ, **given}, capture_output=True, text=True
    )
    assert asked.stdout.strip() == "{'stock': 'postgresql://stock-host/stock'} read_committed", asked.stderr
