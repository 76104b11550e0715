"""T16: beside each smallest TTBR, how long messages of that type waited in the last days, and how many in vain."""

from datetime import timedelta

from django.db import transaction

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline.judging.waits import DAYS
from pgqueue_admin.records import clock
from pgqueue_admin.records.asking import run


@transaction.atomic
def measure() -> None:
    """Histograms of DAYS (of UTC, the last one is today) merged, in one statement."""
    since = (clock.now() - timedelta(days=DAYS - 1)).date()
    run(postgresql().trends.measure_waits(), {"since": since})
