"""Hundreds of queues: what one more costs does not grow with how many there are."""

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import discovery
from tests.monitor.tables import many
from tests.plans import executed

QUEUES = 500


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_the_catalog_is_read_by_keys(connection: Connection, is_analyzed: bool) -> None:
    many(connection, QUEUES)
    if is_analyzed:
        connection.run("analyze")
    plan = executed(connection, postgresql().monitor.tables(), {"schemas": ["public"], "family": None})
    assert plan.blocks < 60 * QUEUES
    found = discovery.find(connection, ["public"])
    assert len(found) == QUEUES
    assert {table.sequence_max for table in found} == {2**31 - 1}
