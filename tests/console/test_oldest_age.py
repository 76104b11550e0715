"""An unknown age of the oldest message: it was there before the sampler, and has no send time."""

import re
from typing import Any

from django.test import Client

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import LatestSample
from tests.console.pages import Connect
from tests.console.sampled import sample, signed_in
from tests.monitor.tables import make, out_of_sight
from tests.said_times import SHORT

INSERT = "insert into \"Q\" (id, headers, body) values (gen_random_uuid(), '{}', '{}')"


def words(client: Client, path: str) -> str:
    page = client.get(path).content.decode().partition("<main")[2].replace("\u00a0", " ")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))


def test_undated_oldest_is_at_least_as_old_as_the_sampler(console_database: str, connect: Connect) -> None:
    connection = connect(console_database)
    connection.run(postgresql().queue.create(table=Address("public", "Q")))
    connection.run(INSERT)
    sample()
    first = LatestSample.objects.get(queue__table="Q")
    sample()
    latest = LatestSample.objects.get(queue__table="Q")
    assert (latest.oldest_how, latest.oldest_at) == ("least", first.oldest_at), "also after a restart"
    client = signed_in()
    for path in ("/queues/", "/queues/public/Q/"):
        assert re.search(r"at least \d", words(client, path)), path
    assert re.search(rf"since before {SHORT}", words(client, "/queues/public/Q/"))


def test_oldest_age_is_unknown_where_no_ready_message_is_reached(
    console_database: str, connect: Connect, settings: Any
) -> None:
    """The first 1,000 rows are read, all expired: an unknown age is not within target."""
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 1_000}
    connection = connect(console_database)
    out_of_sight(connection, make(connection))
    sample()
    client = signed_in()
    assert "unknown / 1 min" in words(client, "/")
    assert "within target" not in words(client, "/").replace("0 of 1 queues are within target", "")
    assert "unknown" in words(client, "/queues/")
    assert "unknown target 1 min, since when cannot be seen" in words(client, "/queues/public/Q/")
    connection.run('delete from "Q"')
    sample()
    assert "unknown" not in words(client, "/queues/public/Q/") + words(client, "/queues/")
