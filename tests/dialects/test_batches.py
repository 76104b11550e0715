"""Statements of both kinds in one batch: a semicolon in a queue's name made the sampler wait for ever."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql


def test_a_name_with_a_semicolon_beside_one_without(connection: Connection) -> None:
    tables = [Address("public", name) for name in ("semi;colon", "plain")]
    for table in tables:
        connection.run(postgresql().queue.create(table=table))
    evidence = postgresql().monitor.evidence
    answers = connection.batch([(evidence(table=table), None) for table in (*tables, *tables)])
    assert [rows[0].rows for rows in answers] == [0, 0, 0, 0]
