"""docs/reference/lease-queue.md: its rights suffice; its programs, calls and settings exist."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from pgqueue_admin.archive import dead_messages
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.lease import Expired, LeaseQueue, LeaseSettings
from tests.lease.tables import let_expire

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/lease-queue.md").read_text(encoding="utf-8")
API = (ROOT / "docs/reference/lease-api.md").read_text(encoding="utf-8")
WORKER, PUBLISHER = re.findall(r"```sql\n(.*?)```", PAGE.partition("## Rights")[2], re.DOTALL)


@contextmanager
def role(owner: Connection, name: str, grants: str, dsn: str) -> Iterator[LeaseQueue]:
    owner.run(f"create role {name} login password 'narrow'")
    try:
        owner.run(grants)
        queue = LeaseQueue(re.sub("//.*@", f"//{name}:narrow@", dsn))
        yield queue
        queue.close()
    finally:
        owner.run(f"drop owned by {name}; drop role {name}")


def test_a_worker_does_everything_with_the_rights_that_are_told(engine: Connection, engine_database: str) -> None:
    with role(engine, "lease_worker", WORKER, engine_database) as queue:
        ids = queue.publish_many(range(5))
        leases = queue.claim(4, releases=1)
        assert queue.renew_many(leases) == {lease.token for lease in leases}
        assert queue.finish(leases[0])
        assert queue.finish(leases[1], "failed")
        assert queue.release(leases[2], 3600)
        let_expire(engine, leases[3].id)
        assert queue.expire() == Expired(0, 1)
        assert queue.claim(1)[0].id == ids[4]
        let_expire(engine, ids[4])
        assert queue.expire() == Expired(1, 0)
        assert queue.renotify() == 1
        assert queue.outlook().claim_in is not None
        with queue.opening.short() as session:
            queue.store.ask_for_dead(session)
            queue.publish(1)
            queue.finish(queue.claim()[0], "failed")
            (dead,) = queue.store.claim_dead(session, 1, 60)
            queue.store.delay_dead(session, dead.archive_id, 60)
            assert queue.store.dead_due_in(session)
            queue.store.end_dead(session, dead.archive_id)
        with queue.opening.short() as session:
            for each in ("delete from messages.message_archive", "update messages.message_archive set details = ''"):
                with pytest.raises(NotPermitted):
                    session.run(each)


def test_a_worker_notes_what_became_of_a_retried_message(engine: Connection, engine_database: str) -> None:
    with role(engine, "lease_worker", WORKER, engine_database) as queue:
        queue.publish(1)
        queue.finish(queue.claim()[0], "failed")
        (archived,) = engine.all("select id from messages.message_archive")
        dead_messages.retry(engine, [archived.id], "ana")
        assert queue.finish(queue.claim()[0])
        assert engine.value("select state from messages.message_archive order by id limit 1") == "succeeded"


def test_a_publisher_publishes_and_sees_nothing(engine: Connection, engine_database: str) -> None:
    with role(engine, "lease_publisher", PUBLISHER, engine_database) as queue:
        assert queue.publish_many([1, 2])
        for forbidden in (queue.claim, queue.expire):
            with pytest.raises(NotPermitted):
                forbidden()


@pytest.mark.parametrize("name", ["ten_lines", "worker"])
def test_the_programs_of_the_page_are_the_examples(name: str) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert (ROOT / f"examples/lease/{name}.py").read_text(encoding="utf-8").partition('"""\n\n')[2] in programs


@pytest.mark.parametrize("name", [field.name for field in fields(LeaseSettings)])
def test_every_setting_has_its_row(name: str) -> None:
    assert re.search(rf"^- `{name}`.*: [A-Z`]", API, re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in dir(LeaseQueue) if not name.startswith("_")])
def test_every_call_of_the_client_is_named(name: str) -> None:
    assert f"- `{name}(" in API
