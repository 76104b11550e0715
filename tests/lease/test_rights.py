"""docs/reference/lease-queue.md: what a role needs for the lease queue, and that it needs no more."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.lease import Expired, LeaseQueue
from tests.lease.tables import let_expire

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/lease-queue.md").read_text(encoding="utf-8")
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
        assert queue.due_in() is not None
        with queue.opening.short() as session:
            for each in ("delete from messages.message_archive", "update messages.message_archive set details = ''"):
                with pytest.raises(NotPermitted):
                    session.run(each)


def test_a_publisher_publishes_and_sees_nothing(engine: Connection, engine_database: str) -> None:
    with role(engine, "lease_publisher", PUBLISHER, engine_database) as queue:
        assert queue.publish_many([1, 2])
        for forbidden in (queue.claim, queue.expire):
            with pytest.raises(NotPermitted):
                forbidden()


def test_the_ten_lines_of_the_page_are_the_example() -> None:
    (page,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    example = (ROOT / "examples/lease/ten_lines.py").read_text(encoding="utf-8")
    assert page == example.partition('"""\n\n')[2]
