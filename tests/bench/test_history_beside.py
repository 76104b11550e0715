"""Plain SQL, DuckDB and Spark are compared over the same messages, whatever earlier parts have read."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench import history_beside
from bench.history_archive import Archive
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import DataFile


class Filing:
    """A driver that names a file for each batch and writes none."""

    def __init__(self, connection: Any):
        self._connection = connection

    def run_once(self) -> None:
        (archive,) = sources(self._connection)
        while batch := planning.plan_batch(self._connection, archive):
            file = DataFile(source=archive, path=f"{batch.pk}.parquet", rows=batch.rows, bytes=1)
            ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [file], [])
            archive.refresh_from_db()

    def close(self) -> None:
        pass


def test_files_hold_as_many_messages_as_are_divided_by_their_time(
    console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_into = set[str]()
    monkeypatch.setattr(history_beside, "by_spark", lambda _, paths: looked_into.update(paths))
    monkeypatch.setattr(history_beside, "installed", lambda _: None)
    with ExitStack() as stack:
        archive = Archive(console_database, stack)
        archive.driver = Filing(archive.connection)  # type: ignore[assignment]
        for rows in (20, 10):  # as the previous part leaves them
            archive.fill(rows)
            archive.driver.run_once()
        history_beside.beside(archive, 20, 1)
    files = DataFile.objects.filter(path__in=[Path(path).name for path in looked_into])
    assert sum(file.rows for file in files) == 20
