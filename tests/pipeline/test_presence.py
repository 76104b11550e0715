"""A folder that is not the one of the manifest is written to by nobody: what lay there would be missing later."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from pgqueue_admin.pipeline.driver import Driver
from pgqueue_admin.pipeline.files import presence
from pgqueue_admin.pipeline.plan import days
from pgqueue_admin.pipeline.sources.tables import sources
from pgqueue_admin.records.models import HistoryBatch, HistoryDay, HistoryFile
from pgqueue_admin.workers import pipelining
from tests.pipeline.events import buried, event
from tests.pipeline.files import TEN, message, write
from tests.pipeline.tables import told


def test_where_the_volume_is_not_mounted_nothing_is_read_until_it_is(database: Any, history: Path) -> None:
    write(history, message(1))
    (archive,) = sources(database)
    event(database, buried(database))
    volume = history.rename(history.parent / "volume")
    history.mkdir()
    assert Driver().turn() == 0
    assert f"HISTORY_DIR ({history}) has none of the 1 newest files" in told(archive)
    assert list(history.iterdir()) == []
    assert (HistoryBatch.objects.count(), HistoryFile.objects.count()) == (0, 1)
    database.run("delete from messages.message_archive")
    history.rmdir()
    volume.rename(history)
    assert Driver().turn() == 0
    assert told(archive) == ""
    assert HistoryFile.objects.filter(dataset="events").exists(), "the driver goes on"


def test_a_day_that_is_to_be_made_anew_is_not_waited_for(database: Any, history: Path) -> None:
    """By the command, which ends and says so; the day stays asked for."""
    write(history, message(1))
    sources(database)
    history.rename(history.parent / "volume")
    HistoryDay.objects.create(day=TEN.date(), asked_at=TEN, is_wanted=True)
    said, troubled = StringIO(), StringIO()
    call_command("pipeline", "run", stdout=said, stderr=troubled)
    assert said.getvalue() == "Batches read and days recomputed: 0.\n"
    assert troubled.getvalue().startswith(f"messages.message_archive: HISTORY_DIR ({history}) has none of the 1 newest")
    assert HistoryDay.objects.get().is_wanted


def test_a_day_that_cannot_be_made_anew_keeps_no_other_waiting(
    console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command: the first is made, the second fails, the third is made."""
    for day in (14, 15, 16):
        HistoryDay.objects.create(day=TEN.date().replace(day=day), asked_at=TEN, is_wanted=True)

    def turn(_: Driver) -> int:
        if (day := days.due()) is None:
            return 0
        fails = day.day.day == 15
        days.failed(day, "lost") if fails else HistoryDay.objects.filter(pk=day.pk).update(is_wanted=False)
        return int(not fails)

    monkeypatch.setattr(Driver, "turn", turn)
    assert pipelining.once() == 2
    assert [each.error for each in HistoryDay.objects.order_by("day")] == ["", "lost", ""]


def test_a_file_that_somebody_took_keeps_nothing_back(console_database: str, tmp_path: Path) -> None:
    assert presence.why_not(tmp_path) == ""
    files = [write(tmp_path, message(number)) for number in range(4)]
    for path in files[:0:-1]:
        assert presence.why_not(tmp_path) == ""
        path.unlink()
    assert "none of the 3 newest files" in presence.why_not(tmp_path)
