"""A warning of dead messages links to exactly the messages that it counts, whatever their exception is named."""

from itertools import count
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgqueue_admin.alerts.mail import links
from pgqueue_admin.archive import failure_groups, store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.services.content_access import ALL
from tests.alerts.conftest import BILLING
from tests.console.pages import Connect

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
ODD = st.text(st.sampled_from("\"\\ *=.:+-'%_\t\u00a0Boom"), min_size=1, max_size=12)
NAMES = st.text(LETTERS, min_size=1, max_size=40) | ODD


@pytest.fixture
def archive(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def counted(archive: Connection, queue: str) -> dict[str, int]:
    """The warnings' counts by cause."""
    sql, all_by_name = postgresql().alerts, {"queues": [], "causes": [], "most": 1_000_000}
    rows = archive.all(sql.lying(named=sql.named), all_by_name)
    return {row.cause: row.count for row in rows if row.queue == queue}


def behind(archive: Connection, queue: str, cause: str) -> int:
    query = search.read(parse_qs(urlsplit(links.archive_path(queue, cause)).query)["q"][0], ALL)
    assert query.error is None
    assert len(store.page(archive, query.filter, limit=1_000).messages) == store.count(archive, query.filter, 1_000)[0]
    failures = search.read(parse_qs(urlsplit(links.failures_path(queue, cause)).query)["q"][0], ALL)
    groups = failure_groups.groups(archive, failures.filter)
    assert sum(group.dead for group in groups) == store.count(archive, query.filter, 1_000).number
    return store.count(archive, query.filter, 1_000).number


def test_each_cause_leads_to_its_own(archive: Connection) -> None:
    """Exception names that are suffixes or prefixes of others, and deaths without one."""
    names = {"Boom": 2, "Hn.Boom": 5, "Outer+Boom": 1, "Booms": 3, "": 4, None: 5}
    for name, number in names.items():
        for _ in range(number):
            store.archive_failed(archive, DeadMessage(queue=BILLING, exception_type=name))
    for _ in range(21):
        store.archive_failed(archive, DeadMessage(queue=BILLING, exception_type="Hn.Failed", result="failed"))
    found = counted(archive, BILLING)
    assert (found["Boom"], found["failed"]) == (2, 9)
    assert {cause: behind(archive, BILLING, cause) for cause in found} == found


tables = count(1)


@given(st.lists(NAMES, min_size=1, max_size=4), st.text(LETTERS, max_size=20), st.sampled_from([1, 399, 400, 5_000]))
@example(["Boom", "Hn.Boom"], 'a"b c', 1)
@example(['say "hi"', "=Boom", "Boom*", "\\", " ", '"'], '"public"."Billing', 5_000)
@settings(max_examples=60)
def test_the_count_behind_a_link_is_the_figure_beside_it(
    archive: Connection, names: list[str], table: str, length: int
) -> None:
    """One queue per example. Counts keep the first 400 characters of a name."""
    queue = postgresql().canonical(Address("public", f"{table}{next(tables)}"))
    long = names[0] + length * "x"
    for name in (*names, *names[:1], f"Hn.{names[0]}", long, f"{long}y", f"Hn.{long}"):
        store.archive_failed(archive, DeadMessage(queue=queue, exception_type=name))
    found = counted(archive, queue)
    assert sum(found.values()) == len(names) + 5
    assert {cause: behind(archive, queue, cause) for cause in found} == found
