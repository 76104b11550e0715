"""L6, L9: each minute by beat, by hand, or by both at once; nothing happens without a lease queue."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command

from pgqueue_admin.config.celery import app
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.lease import LeaseQueue, expiry
from tests.lease.tables import archived, let_expire, waiting
from tests.older_schema import set_back

Connect = Callable[..., Connection]


def test_beat_does_it_each_minute_and_the_command_says_what_it_did(
    console_database: str, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = LeaseQueue(console_database)
    ids = queue.publish_many(range(3))
    queue.claim(1)
    queue.claim(1, releases=1)
    engine = connect(console_database)
    for message in ids[:2]:
        let_expire(engine, message)
    call_command("lease", "expire")
    assert capsys.readouterr().out == "1 archived as lock_expired, 1 released, 2 notified again.\n"
    assert tasks.keep_leases() == [0, 0, 2]
    assert archived(engine, "message_id::int, handled_by") == [(ids[0], expiry.BY)]
    entry = app.conf.beat_schedule["end expired locks"]
    assert (entry["task"], entry["schedule"]) == ("pgqueue_admin.housekeeping.tasks.keep_leases", 60)
    queue.close()


def test_several_places_at_once(engine: Connection, engine_database: str, connect: Connect, queue: LeaseQueue) -> None:
    ids = queue.publish_many(range(3000))
    queue.claim(2500)
    engine.run("update messages.message set lock_expires_at = lock_expires_at - interval '1 day'")
    sessions = [connect(engine_database) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda session: expiry.end_and_renotify(session, postgresql()), sessions))
    assert sum(each.archived for each in done) == 2500
    assert sorted(int(row[0]) for row in archived(engine)) == ids[:2500]
    assert waiting(engine) == ids[2500:]


@pytest.mark.parametrize("version", [None, 3])
def test_where_there_is_no_lease_queue_of_ours_nothing_is_done(
    version: int | None, database: str, engine: Connection, connect: Connect
) -> None:
    if version:
        set_back(engine, version)
    assert expiry.end_and_renotify(engine if version else connect(database), postgresql()) == (0, 0, 0)
