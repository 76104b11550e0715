"""How many lie dead in the archive, as it was counted last."""

from datetime import timedelta

from pgqueue_admin.records import board, clock, rail, samples
from pgqueue_admin.records.models import ArchiveSample


def test_what_was_counted_last_is_told_also_after_the_clock_stepped_back(console_database: str) -> None:
    now = clock.now()
    samples.store_archive(5, now + timedelta(hours=1), history=True)
    for second in range(3):
        samples.store_archive(7, now + timedelta(seconds=second), history=False)
    assert (board.dead(now).archived, rail.counts(timedelta(0)).dead) == (7, 7)
    assert ArchiveSample.objects.count() == 2, "written when it changed"
    newest = samples.archive()
    assert newest is not None
    assert newest.dead == 7
