"""The number of dead messages in the archive, as last counted."""

from datetime import timedelta

from pgqueue_admin.models import ArchiveSample, database_clock, navigation_counts, queue_overview, samples


def test_newest_archive_count_wins_after_the_clock_stepped_back(console_database: str) -> None:
    now = database_clock.now()
    samples.store_archive(5, now + timedelta(hours=1), history=True)
    for second in range(3):
        samples.store_archive(7, now + timedelta(seconds=second), history=False)
    assert (queue_overview.dead(now).archived, navigation_counts.counts(timedelta(0)).dead) == (7, 7)
    assert ArchiveSample.objects.count() == 2, "written when it changed"
    newest = samples.archive()
    assert newest is not None
    assert newest.dead == 7
