"""T16: beside each smallest TTBR, how long messages of that type waited in the last days, and how many in vain."""

from datetime import timedelta

from django.db import transaction

from pgqueue_admin.history.anomalies.ttbr_risk import DAYS
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.raw_sql import console_sql, run


@transaction.atomic
def measure() -> None:
    """Histograms of DAYS (of UTC, the last one is today) merged, in one statement."""
    since = (database_clock.now() - timedelta(days=DAYS - 1)).date()
    run(console_sql.trends.measure_waits(), {"since": since})
