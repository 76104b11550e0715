"""How old the oldest is where nothing tells: it lay there before the sampler, and says not when it was sent."""

import re

from django.test import Client

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.models import LatestSample
from tests.console.pages import Connect
from tests.console.sampled import sample, signed_in

INSERT = "insert into \"Q\" (id, headers, body) values (gen_random_uuid(), '{}', '{}')"


def words(client: Client, path: str) -> str:
    page = client.get(path).content.decode().partition("<main")[2].replace("\u00a0", " ")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))


def test_it_is_at_least_as_old_as_the_sampler(console_database: str, connect: Connect) -> None:
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
    assert re.search(r"since before \d\d:\d\d", words(client, "/queues/public/Q/"))
