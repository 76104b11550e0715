"""Nothing is written to a folder other than the manifest's: its files would be missing later."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import recompute_requests
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.history.storage import layout
from pgqueue_admin.models import DataFile, HistoryBatch, RecomputeRequest
from pgqueue_admin.workers.processes import history_process
from tests.history.events import buried, event
from tests.history.files import TEN, message, write
from tests.history.tables import told


def test_where_the_volume_is_not_mounted_nothing_is_read_until_it_is(database: Any, history: Path) -> None:
    write(history, message(1))
    (archive,) = sources(database)
    event(database, buried(database))
    volume = history.rename(history.parent / "volume")
    history.mkdir()
    assert BatchLoop().run_once() == 0
    assert f"PGQUEUE_HISTORY_DIR ({history}) has none of the 1 newest files" in told(archive)
    assert list(history.iterdir()) == []
    assert (HistoryBatch.objects.count(), DataFile.objects.count()) == (0, 1)
    database.run("delete from messages.message_archive")
    history.rmdir()
    volume.rename(history)
    assert BatchLoop().run_once() == 0
    assert told(archive) == ""
    assert DataFile.objects.filter(dataset="events").exists(), "the driver goes on"


def test_a_day_that_is_to_be_made_anew_is_not_waited_for(database: Any, history: Path) -> None:
    """The command ends with a message; the day stays requested."""
    write(history, message(1))
    sources(database)
    history.rename(history.parent / "volume")
    RecomputeRequest.objects.create(day=TEN.date(), asked_at=TEN, is_wanted=True)
    said, troubled = StringIO(), StringIO()
    call_command("history", "run", stdout=said, stderr=troubled)
    assert said.getvalue() == "Batches read and days recomputed: 0.\n"
    assert troubled.getvalue().startswith(
        f"messages.message_archive: PGQUEUE_HISTORY_DIR ({history}) has none of the 1 newest"
    )
    assert RecomputeRequest.objects.get().is_wanted


def test_a_day_that_cannot_be_made_anew_keeps_no_other_waiting(
    console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command: the first day succeeds, the second fails, the third succeeds."""
    for day in (14, 15, 16):
        RecomputeRequest.objects.create(day=TEN.date().replace(day=day), asked_at=TEN, is_wanted=True)

    def run_once(_: BatchLoop) -> int:
        if (day := recompute_requests.due()) is None:
            return 0
        fails = day.day.day == 15
        recompute_requests.failed(day, "lost") if fails else RecomputeRequest.objects.filter(pk=day.pk).update(
            is_wanted=False
        )
        return int(not fails)

    monkeypatch.setattr(BatchLoop, "run_once", run_once)
    assert history_process.once() == 2
    assert [each.error for each in RecomputeRequest.objects.order_by("day")] == ["", "lost", ""]


def test_a_file_that_somebody_took_keeps_nothing_back(console_database: str, tmp_path: Path) -> None:
    assert layout.unmounted_reason(tmp_path) == ""
    files = [write(tmp_path, message(number)) for number in range(4)]
    for path in files[:0:-1]:
        assert layout.unmounted_reason(tmp_path) == ""
        path.unlink()
    assert "none of the 3 newest files" in layout.unmounted_reason(tmp_path)
