"""Runs batches one after the other. Spark is started with the first, and stays."""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.pipeline import planning
from pgqueue_admin.pipeline.places import folder
from pgqueue_admin.pipeline.selects import selects
from pgqueue_admin.pipeline.tables import sources
from pgqueue_admin.records.models import HistoryBatch
from pgqueue_admin.records.source import source

log = logging.getLogger(__name__)
_ONLY = "-c default_transaction_read_only=on -c statement_timeout=600000 -c timezone=UTC"


class Driver:
    """``turn`` once, or until ``ending`` says so."""

    def __init__(self, code_version: str = "", most: int = planning.MOST, spark: Any = None):
        self._code_version, self._most, self._spark = code_version, most, spark

    def turn(self, ending: Callable[[], bool] = lambda: False) -> int:
        """Everything that is there to be read now, source by source; how many batches were done."""
        done = 0
        with source().reading() as connection:
            for each in sources(connection):
                while not ending() and (batch := planning.plan(connection, each, self._most)):
                    self._run(connection, batch)
                    each.refresh_from_db()
                    done += 1
        return done

    def _run(self, connection: Connection, batch: HistoryBatch) -> None:
        from pgqueue_admin.pipeline import job  # the first import of pyspark in this process

        parts = selects(connection, batch, parts=2)
        job.run(self._session(), batch, _for_looking(source().dsn), parts, folder(), self._code_version)
        log.info("History: %s rows of %s in batch %s.", batch.rows, batch.source.table, batch.pk)

    def _session(self) -> Any:
        if self._spark is None:
            from pgqueue_admin.pipeline.spark import session

            self._spark = session(settings.PGQUEUE["SPARK_MASTER"], settings.PGQUEUE["VAR"] / "spark")
        return self._spark

    def close(self) -> None:
        if self._spark is not None:
            self._spark.stop()
        self._spark = None


def _for_looking(dsn: str) -> str:
    """A session that can only read, and ends by itself: Arrow's driver knows none of our pools."""
    parts = urlsplit(dsn)
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    asked["options"] = f"{asked.get('options', '')} {_ONLY}".strip()
    asked["application_name"] = "pgqueue-admin history"
    return urlunsplit(parts._replace(query=urlencode(asked, quote_via=quote)))
