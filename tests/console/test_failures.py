"""Failures: groups equal a recount; their states, people's notes on them, and their acts."""

import json
import re
from collections import Counter
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.template.loader import render_to_string

from pgqueue_admin.alerts import failures_of
from pgqueue_admin.alerts.mail import metrics
from pgqueue_admin.archive import failure_groups, fingerprints, store, text_search
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.console.failures import chosen as chosen_page
from pgqueue_admin.console.failures.comparison import Comparison, compare
from pgqueue_admin.console.overview.views import _causes
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.live.topics import find
from pgqueue_admin.models import (
    Alert,
    AuditEntry,
    FailureGroup,
    MaskingRule,
    Operation,
    Process,
    Queue,
    TeamFailure,
    database_clock,
    queue_database,
)
from pgqueue_admin.services import failure_groups as groups
from pgqueue_admin.services.content_access import ALL
from tests.console.pages import matched, shown
from tests.console.recorded import Recorded
from tests.explain import executed

LISTED = re.compile(r'id="f([0-9a-f]{16})"')
RECOUNT = """
select fingerprint, count(*) as dead from messages.message_archive where state = 'dead' group by 1 order by 2 desc, 1
"""


def recounted(recorded: Recorded) -> dict[str, int]:
    return {row.fingerprint: row.dead for row in recorded.connection.all(RECOUNT)}


@pytest.fixture
def largest(recorded: Recorded) -> str:
    return next(iter(recounted(recorded)))


@pytest.mark.parametrize("path", ["/failures/", "/archive/"])
def test_no_template_is_drawn_once_for_each_row(recorded: Recorded, path: str) -> None:
    """For fifty rows, rendering these took most of the page's time."""
    drawn = Counter(each.name for each in recorded.viewer.get(path).templates)
    assert 0 < max(drawn.values()) < len(recounted(recorded))


def test_every_group_is_listed_with_the_count_of_a_recount(recorded: Recorded) -> None:
    expected = recounted(recorded)
    assert None not in expected
    assert len(expected) > 3
    page = shown(recorded.viewer, "/failures/")
    rows = re.findall(r'id="f([0-9a-f]{16})".*?data-l="Dead"><b>.*?>([\d,]+)<', page, re.DOTALL)
    assert {digest: int(count.replace(",", "")) for digest, count in rows} == expected
    assert f"{len(expected)} groups, {sum(expected.values()):,} messages" in page


def test_the_page_follows_its_figures(recorded: Recorded, largest: str) -> None:
    page = shown(recorded.viewer, "/failures/")
    topic = matched(r'data-topics="failures:([^"]+)"', page)
    assert set(topic.split(",")) == set(LISTED.findall(page))
    found = find(f"failures:{topic}")
    assert found is not None
    told = found[0].render(found[1])
    before = recounted(recorded)[largest]
    assert f"{before:,}" in told[f"f{largest}.dead"]
    for name in ("dead", "state", "tone"):
        assert f'="f{largest}.{name}"' in page
    discard = "update messages.message_archive set resolution = 'discarded' where id = ("
    newest = "select max(id) from messages.message_archive where state = 'dead' and fingerprint = %(f)s)"
    recorded.connection.run(discard + newest, {"f": largest})
    assert f"{before - 1:,}" in found[0].render(found[1])[f"f{largest}.dead"]
    one = shown(recorded.viewer, f"/failures/{largest}/")
    assert f'data-topics="failures:{largest}"' in one
    assert f'data-live="f{largest}.died_recently"' in one
    assert 'data-topics=""' in shown(recorded.viewer, "/failures/?q=queue:Billing")
    for wrong in ("", "x", "0" * 15, ",".join(f"{n:016x}" for n in range(51))):
        assert find(f"failures:{wrong}") is None


@pytest.mark.parametrize("q", ["queue:Billing", "error:CardDeclined", "vat", "state:dead type:ChargeCard"])
def test_a_filter_counts_what_the_archive_finds(recorded: Recorded, q: str) -> None:
    page = shown(recorded.viewer, f"/failures/?q={q}")
    archive = shown(recorded.viewer, f"/archive/?q={q if 'state' in q else f'state:dead {q}'}")
    counted = re.search(r">\s*([\d,]+)\s+match", archive)
    groups = re.search(r"groups?, ([\d,]+) messages?,\s+counted", page)
    assert (groups[1] if groups else None) == (counted[1] if counted else None)


def test_a_filter_that_is_none_searches_nothing(recorded: Recorded) -> None:
    for q in ("state:retried", "colour:red", "fp:9"):
        page = shown(recorded.viewer, f"/failures/?q={q}")
        assert "Nothing was searched" in page
        assert not LISTED.search(page)


def test_texts_are_looked_for_in_windows_and_the_page_says_how_far(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word is searched in every body: nobody waits for millions of messages."""
    monkeypatch.setattr(text_search, "ROWS", 100)
    monkeypatch.setattr(text_search, "FIRST", 60)
    recorded.connection.run("update messages.message_archive set body = 'OrderId 4711'")
    whole = sum(recounted(recorded).values())
    page = shown(recorded.viewer, "/failures/?q=body:4711&by=queue")
    assert sum(count for _, count in named(page)) == 100 < whole
    assert all("body%3A4711" in address for address, _ in named(page))
    page = shown(recorded.viewer, "/failures/?q=body:4711")
    assert matched(r"groups?, ([\d,]+) messages?,\s+counted so far", page) == "100"
    assert "match so far" in page
    assert "read row by row" in page
    seen = 100
    while onward := re.search(r'href="(\?[^"]*from=[^"]*)">Search the next', page):
        page = shown(recorded.viewer, "/failures/" + unescape(onward[1]))
        counted = re.search(r"groups?, ([\d,]+) messages?,\s+counted", page)
        seen += int(counted[1]) if counted else 0  # the last part may have no match
    assert seen == whole
    assert "so far" in shown(recorded.viewer, "/failures/?q=body:nowhere")


def test_a_search_is_helped_and_corrected_as_in_the_archive(recorded: Recorded) -> None:
    page = shown(recorded.viewer, "/failures/?q=queue:Billing age:>1hh type:ChargeCard")
    assert 'hx-get="/archive/suggestions/' in page
    assert 'id="grammar" open' in page
    assert "1hh is no duration" in page
    assert re.search(r"queue:Billing\s*<mark>age:&gt;1hh</mark>\s*type:ChargeCard", page)


@pytest.mark.parametrize("by", ["type", "queue", "endpoint"])
def test_the_dead_are_counted_by_other_names(recorded: Recorded, by: str) -> None:
    page = shown(recorded.viewer, f"/failures/?by={by}")
    counts = [int(each.replace(",", "")) for each in re.findall(r'data-l="Dead"><b>.*?>([\d,]+)<', page)]
    assert sum(counts) == sum(recounted(recorded).values())
    for address in re.findall(r'<th role="rowheader".*?href="(\?q=[^"]+)"', page, re.DOTALL)[:3]:
        assert LISTED.search(shown(recorded.viewer, f"/failures/{address}"))


def named(page: str) -> list[tuple[str, int]]:
    """The link of each row, where it has one, and its count."""
    row = r'<th role="rowheader"(.*?)</th>.*?data-l="Dead"><b>.*?>([\d,]+)<'
    links = [(re.search(r'href="([^"]+)"', head), count) for head, count in re.findall(row, page, re.DOTALL)]
    return [(unescape(link[1]) if link else "", int(count.replace(",", ""))) for link, count in links]


@pytest.mark.parametrize("by", ["type", "queue", "endpoint"])
@pytest.mark.parametrize("q", ["", "queue:Billing", "type:ChargeCard", "e"])
def test_a_name_leads_to_so_many_as_it_counts(recorded: Recorded, by: str, q: str) -> None:
    page = shown(recorded.viewer, f"/failures/?q={q}&by={by}")
    assert ("all dead messages in" in page) == (not q)
    assert len(named(page)) > 0
    for address, count in named(page)[:4]:
        found = matched(r"groups?, ([\d,]+) messages?,\s+counted", shown(recorded.viewer, f"/failures/{address}"))
        assert found == f"{count:,}", address


def test_of_more_than_a_cap_it_says_which_were_counted(recorded: Recorded, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 5}
    page = shown(recorded.viewer, "/failures/?by=type")
    assert "there are older" in page
    assert re.search(r'data-l="Dead"><b>.*?>\d\+<', page)
    assert "or earlier" in page
    by_queue = shown(recorded.viewer, "/failures/?by=queue")
    assert sum(count for _, count in named(by_queue)) == sum(recounted(recorded).values()) > 5
    assert "or earlier" not in by_queue


def test_failure_without_an_endpoint_has_no_link(recorded: Recorded) -> None:
    """No search would find it: its handler is not an endpoint of a transport message."""
    recorded.connection.run("delete from messages.message_archive")
    died(recorded, "f" * 16, "1 minute")
    recorded.connection.run("update messages.message_archive set kind = 'transport', handled_by = '(unknown)'")
    assert named(shown(recorded.viewer, "/failures/?by=endpoint")) == [("", 1)]


def test_more_names_than_are_shown_are_said(recorded: Recorded) -> None:
    assert "there are more" not in shown(recorded.viewer, "/failures/?by=type")
    recorded.connection.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, queue, message_type)"
        " select now(), '{}', 'failed', 'w', 'q', 'T' || n from generate_series(1, 201) n"
    )
    page = shown(recorded.viewer, "/failures/?by=type")
    assert re.search("The .*200.* with the most dead are shown, and there are more", page)
    assert len(named(page)) == 200


def died(recorded: Recorded, fingerprint: str, ago: str, state: str = "dead", queue: str = "q") -> None:
    recorded.connection.run(
        "insert into messages.message_archive"
        " (created_at, message, result, handled_by, queue, fingerprint, died_at, resolution)"
        " values (now(), '{}', 'failed', 'w', %(queue)s, %(fp)s, now() - %(ago)s::interval, nullif(%(state)s, 'dead'))",
        {"fp": fingerprint, "ago": ago, "state": state, "queue": queue},
    )


@pytest.mark.parametrize(
    ("deaths", "state"),
    [
        ([("5 minutes", "dead")], "new"),
        ([("23 hours", "dead"), ("1 minute", "dead")], "new"),
        ([("9 days", "dead"), ("1 minute", "dead")], "back"),
        ([("2 days", "succeeded"), ("1 minute", "dead")], "back"),
        ([("2 days", "dead"), ("1 minute", "dead")], "quiet"),
        ([("2 days", "dead"), *[("1 minute", "dead")] * 3], "growing"),
        ([("2 days", "dead"), *[("5 hours", "dead")] * 500, *[("1 minute", "dead")] * 3], "quiet"),
        ([("2 days", "dead")], "quiet"),
        ([("2 days", "dead"), *[("-30 days", "dead")] * 5], "quiet"),
        ([("-30 days", "dead")], "quiet"),
    ],
)
def test_the_state_says_what_happened_lately(recorded: Recorded, deaths: list[tuple[str, str]], state: str) -> None:
    for ago, became in deaths:
        died(recorded, "f" * 16, ago, became)
    found = failure_groups.group(recorded.connection, "f" * 16)
    assert found
    assert found.state() == state


def test_deaths_of_a_day_are_counted_where_no_state_hangs_on_them(recorded: Recorded) -> None:
    for ago in ("1 minute", "20 hours", "2 days"):
        died(recorded, "f" * 16, ago)
    page = shown(recorded.viewer, f"/failures/{'f' * 16}/")
    assert re.search(r"<dt>Died in 24 h</dt><dd class=\"v\">(<[^>]*>)*2<", page)


def test_failure_whose_first_deaths_were_removed_is_not_new(recorded: Recorded) -> None:
    died(recorded, "f" * 16, "1 minute")
    found = failure_groups.group(recorded.connection, "f" * 16)
    assert found
    assert found.state(database_clock.now() - 30 * failure_groups.DAY) == "back"


def test_a_death_dated_later_than_now_did_not_happen_lately(recorded: Recorded) -> None:
    for ago in ("10 days", "-30 days", "-30 days"):
        died(recorded, "f" * 16, ago)
    found = failure_groups.group(recorded.connection, "f" * 16)
    assert found
    assert (found.dead, found.died_lately, found.died_today) == (3, 0, 0)
    assert found.counted_at - found.last_at > 9 * failure_groups.DAY


def test_deaths_all_dated_in_the_future_count_as_now(recorded: Recorded) -> None:
    died(recorded, "f" * 16, "-30 days")
    found = failure_groups.group(recorded.connection, "f" * 16)
    assert found
    assert found.first_at == found.last_at == found.counted_at


@pytest.mark.parametrize(("known", "state"), [(25, "back"), (40, "back"), (23, "new")])
def test_failure_is_new_for_a_day_after_its_first_death(recorded: Recorded, known: int, state: str) -> None:
    """Even when the first death has left the archive."""
    died(recorded, "f" * 16, "22 hours")
    found = failure_groups.group(recorded.connection, "f" * 16)
    assert found
    assert found.state(database_clock.now() - known * failure_groups.DAY / 24) == state


def test_absurd_times_break_no_page(recorded: Recorded) -> None:
    for at in ("infinity", "-infinity", "0044-03-15 BC", "10000-01-01"):
        recorded.connection.run(
            "insert into messages.message_archive (created_at, message, result, handled_by, fingerprint, died_at)"
            " values (now(), '{}', 'failed', 'w', %(fp)s, %(at)s)",
            {"fp": "e" * 16, "at": at},
        )
    shown(recorded.viewer, "/failures/?by=queue")
    assert "e" * 16 in LISTED.findall(shown(recorded.viewer, "/failures/"))
    for window in ("1h", "24h", "7d", "x"):
        shown(recorded.viewer, f"/failures/{'e' * 16}/?w={window}")


TITLE = r"<title>\s*(.*?)\s*(?:·|</title>)"
TONE = r'<section class="verdict ?(\w*)"'


@pytest.mark.parametrize(
    ("asked", "said"),
    [("q=queue:Nowhere", "No cause matches"), ("owner=Ana", "No cause matches"), ("state=quiet", r"\d+ causes match")],
)
def test_a_search_is_no_verdict_over_what_it_leaves_out(recorded: Recorded, asked: str, said: str) -> None:
    """New failures may lie outside of the search."""
    died(recorded, "f" * 16, "1 minute")
    page = shown(recorded.viewer, f"/failures/?{asked}")
    assert re.match(said, matched(TITLE, page, re.DOTALL))
    assert matched(TONE, page) == ""


def test_failures_are_filtered_and_counted_by_retry_outcome(recorded: Recorded) -> None:
    before = recounted(recorded)
    assert "never retried" not in shown(recorded.viewer, "/failures/"), "where nothing was, there is nothing to tell"
    for digest, became in (("d" * 16, "dead_again"), ("e" * 16, "succeeded")):
        died(recorded, digest, "2 days", became)
        died(recorded, digest, "1 minute")
        died(recorded, digest, "1 minute")
    page = shown(recorded.viewer, "/failures/")
    told = re.findall(r'href="\?retried=(\w+)"[^>]*>([^<]*)</a>\s*(?:<[^>]*>)*\s*([\d,]+)', page)
    assert told == [
        ("again", "retried, died again", "2"), ("well", "retried, none died again", "2"),
        ("never", "never retried", str(sum(before.values()))),
    ]  # fmt: skip
    for retried, digests in (("again", {"d" * 16}), ("well", {"e" * 16}), ("never", set(before)), ("x", None)):
        page = shown(recorded.viewer, f"/failures/?retried={retried}")
        assert set(LISTED.findall(page)) == (digests or set(recounted(recorded)))
        assert ('type="hidden" name="retried"' in page) == (retried != "x")


def test_ungrouped_failures_prevent_an_all_clear(recorded: Recorded) -> None:
    recorded.connection.run("update messages.message_archive set fingerprint = null")
    failed = recorded.connection.value("select count(*) from messages.message_archive where result <> 'success'")
    page = shown(recorded.viewer, "/failures/")
    assert matched(TITLE, page, re.DOTALL).startswith(f"{failed} failed messages in no group yet")
    assert matched(TONE, page) == ""
    died(recorded, "f" * 16, "2 days")
    assert f"1 older cause is open; {failed} failed messages in no group yet" in shown(recorded.viewer, "/failures/")
    assert "in no group yet: other programs" in shown(recorded.viewer, "/failures/?owner=Ana")


def test_unreadable_failure_is_named_by_its_fingerprint(recorded: Recorded) -> None:
    died(recorded, "f" * 16, "1 minute")
    look = recorded.connection
    look.run("update messages.message_archive set result = 'rejected' where fingerprint = %(f)s", {"f": "f" * 16})
    look.run("set allow_system_table_mods = on")
    look.run("delete from pg_catalog.pg_enum where enumlabel = 'rejected'")
    page = shown(recorded.viewer, "/failures/")
    assert set(LISTED.findall(page)) == set(recounted(recorded))
    assert matched(rf"(Failure {'f' * 16})", page)


def test_more_groups_than_are_judged_hide_none_that_is_new(recorded: Recorded) -> None:
    recorded.connection.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, queue, fingerprint, died_at)"
        " select now(), '{}', 'failed', 'w', 'q', lpad(to_hex(n), 16, '0'), now() - interval '2 days'"
        " from generate_series(1, %(most)s) n, generate_series(1, 2)",
        {"most": failure_groups.MOST + 1},
    )
    page = shown(recorded.viewer, "/failures/")
    assert "3,000+ causes have dead messages, too many to judge each" in matched(TITLE, page, re.DOTALL)
    assert matched(TONE, page) == "warn"
    assert "3,000+ groups, 6," in page
    assert "3,000 groups were looked at, and there are more" in page
    died(recorded, "f" * 16, "1 minute")
    page = shown(recorded.viewer, "/failures/")
    assert "At least one cause needs a look: it is new" in matched(TITLE, page, re.DOTALL)
    assert LISTED.findall(page)[0] == "f" * 16
    assert "No cause of those looked at matches" in shown(recorded.viewer, "/failures/?owner=Ana")
    assert "1 failure, 1 dead message" in shown(recorded.operator, f"/failures/chosen/?f={'f' * 16}")


def test_number_of_ungrouped_failures_is_shown(recorded: Recorded) -> None:
    recorded.connection.run(
        "update messages.message_archive set fingerprint = null"
        " where id in (select id from messages.message_dead limit 3)"
    )
    assert "3 failed messages are in no group yet" in shown(recorded.viewer, "/failures/")
    fingerprints.catch_up(recorded.connection)
    assert "in no group yet" not in shown(recorded.viewer, "/failures/")


def test_nothing_dead_says_what_would_be_here(recorded: Recorded) -> None:
    recorded.connection.run("delete from messages.message_archive")
    page = shown(recorded.viewer, "/failures/")
    assert "No message is dead" in page
    assert "grouped here by cause" in page


def test_tables_of_a_version_before_say_what_to_run(recorded: Recorded) -> None:
    recorded.connection.run("alter table messages.message_archive drop column fingerprint cascade")
    assert "manage.py engine_schema" in shown(recorded.viewer, "/failures/")
    shown(recorded.viewer, "/archive/")


def test_a_group_shows_what_its_messages_share_and_leads_to_them(recorded: Recorded, largest: str) -> None:
    page = shown(recorded.viewer, f"/failures/{largest}/")
    dead = recounted(recorded)[largest]
    assert "share" in page
    assert "All <" in page or f"All {dead}" in page
    found = re.search(rf'/archive/\?q=([^"]*fp%3A{largest})"', page)
    assert found
    assert re.search(rf">\s*{dead:,}\s+match", shown(recorded.viewer, f"/archive/?q={found[1]}"))
    message = re.search(r'href="(/archive/\d+/\?q=[^"]+)"', page)
    assert message
    shown(recorded.viewer, message[1].replace("&amp;", "&"))


def test_its_messages_have_columns_from_bodies_and_a_search_of_their_own(recorded: Recorded, largest: str) -> None:
    recorded.connection.run(
        "update messages.message_archive set body = '{\"OrderId\": \"ORD-4711\", \"Total\": 12.50}'"
        " where fingerprint = %(f)s", {"f": largest}
    )  # fmt: skip
    page = shown(recorded.operator, f"/failures/{largest}/?w=7d")
    assert re.search(r'data-l="OrderId"[^>]*>\s*ORD-4711', page)
    assert '<input type="hidden" name="w" value="7d">' in page
    assert re.search(rf'<form [^>]*action="/archive/">.*?name="q" value="[^"]*fp:{largest} "', page, re.DOTALL)
    page = shown(recorded.operator, f"/failures/{largest}/?cols=Total")
    assert re.search(r'data-l="Total"[^>]*>\s*12.50', page)
    assert 'data-l="OrderId"' not in page


def test_unknown_fingerprint_is_not_found(recorded: Recorded) -> None:
    for name in ("0" * 16, "nothing", "A" * 16):
        assert recorded.viewer.get(f"/failures/{name}/").status_code == 404


def test_unreadable_archive_makes_the_failure_page_claim_nothing(recorded: Recorded, largest: str) -> None:
    recorded.operator.post(f"/failures/{largest}/acknowledgement/", {"until": "4 h"})
    with recorded.connection.transaction():
        recorded.connection.run("lock table messages.message_archive")
        page = shown(recorded.operator, f"/failures/{largest}/")
    recorded.connection.run("alter table messages.message_archive drop column fingerprint cascade")
    queue_database.close()
    for each in (page, shown(recorded.operator, f"/failures/{largest}/")):
        assert "Owner and note" in each
        assert "None of its messages is dead" not in each
        assert "none of its messages now" not in each
        assert "is open again" not in each
        assert "how many of its messages are dead is not known" in each


def alike(recorded: Recorded, bodies: list[dict[str, Any]], headers: list[dict[str, str]]) -> Comparison:
    """The comparison of messages with these bodies and headers: what they share and where they differ."""
    for body, header in zip(bodies, headers, strict=True):
        document, given = json.dumps(body).encode(), json.dumps(header)
        dead = DeadMessage(queue='"public"."Sales"', exception_type="Alike", headers=given, body=document)
        store.archive_failed(recorded.connection, dead)
    digest = recorded.connection.value(
        "select fingerprint from messages.message_archive where exception_type = 'Alike' limit 1"
    )
    return compare(failure_groups.members(recorded.connection, digest), ALL)


def test_values_that_were_not_read_are_called_not_compared(recorded: Recorded) -> None:
    bodies = [{"Country": "AT" if n < 3 else "DE"} | ({"Long": "x" * 9_000} if n % 3 == 0 else {}) for n in range(6)]
    headers = [{"Shop.Channel": "web"} | ({"Shop.Long": "y" * 17_000} if n == 0 else {}) for n in range(6)]
    found = alike(recorded, bodies, headers)
    said = {(each.name, each.value): each.messages for each in found.differing}
    assert said == {
        ("Body Country", "AT"): 2,
        ("Body Country", "DE"): 2,
        ("Body Country", "not compared"): 2,
    }
    assert "Header Shop.Channel" not in {each.name for each in found.shared}


def test_values_of_every_kind_are_compared_whole(recorded: Recorded) -> None:
    begun = "https://shop.example/" + "p" * 100
    bodies = [
        {
            "Url": begun + str(n % 2),
            "Voucher": None if n % 2 else "null",
            "Lines": [1, {"b": 2, "a": n % 2}],
            "Same": [None, 1.50],
            "Note": "",
        }
        | ({"Gone": 1} if n % 2 else {})
        for n in range(6)
    ]
    found = alike(recorded, bodies, [{} for _ in bodies])
    said = [(each.name, each.value, each.messages) for each in found.differing]
    assert said.count(("Body Url", begun[:100] + "…", 3)) == 2
    assert said.count(("Body Voucher", "null", 3)) == 2
    assert ("Body Lines", '[1, {"a": 1, "b": 2}]', 3) in said
    assert [line for line in said if line[0] == "Body Gone"] == [("Body Gone", "1", 3), ("Body Gone", "not there", 3)]
    shared = {each.name: each.value for each in found.shared}
    assert (shared["Body Same"], shared["Body Note"]) == ("[null, 1.5]", "empty")


def died_in(recorded: Recorded, host: str, minutes: int, headers: dict[str, str] | None = None, **more: Any) -> str:
    """A message that died in Billing this many minutes ago."""
    dead = DeadMessage(
        queue='"public"."Billing"', endpoint="Billing", machine=host, headers=json.dumps(headers or {}),
        **{"exception_type": "Shop.Versioned", **more},
    )  # fmt: skip
    store.archive_failed(recorded.connection, dead)
    recorded.connection.run(
        "update messages.message_archive set died_at = now() - %(m)s * interval '1 minute'"
        " where seq = (select max(seq) from messages.message_archive)",
        {"m": minutes},
    )
    return str(recorded.connection.value("select fingerprint from messages.message_archive order by seq desc limit 1"))


def process(host: str, version: str, minutes: int, **facts: Any) -> Process:
    now = database_clock.now()
    about = {"role": "endpoint", "endpoint": "Billing", "host": host, "pid": Process.objects.count() + 90_000}
    times = {"started_at": now - timedelta(minutes=minutes), "heartbeat_at": now, "start_ticks": 1}
    return Process.objects.create(
        **{**about, **times, "code_version": version, "handled": 5, "received_at": now, **facts}
    )


def versions_said(recorded: Recorded, digest: str) -> str:
    page = shown(recorded.viewer, f"/failures/{digest}/").split('id="h-versions"')
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page[1].split("</section>")[0])).split()) if page[1:] else ""


def test_a_failure_tells_with_which_version_it_began(recorded: Recorded) -> None:
    process("app-1", "3.4.1", 40)
    process("app-2", "3.4.0", 300)
    process("app-3", "3.3.9", 300, received_at=database_clock.now() - timedelta(hours=4))  # idle since then
    process("app-4", "3.3.8", 300, ended_at=database_clock.now() - timedelta(hours=2))
    digest, *_ = [died_in(recorded, "app-1", minutes) for minutes in (30, 20, 10)]
    said = versions_said(recorded, digest)
    assert "Began with 3.4.1" in said
    assert "3.4.0 beside it does not fail" in said
    assert "3.3.9 beside it" not in said
    assert "3.3.8" not in said
    assert "Known for" not in said
    died_in(recorded, "app-9", 5)
    assert "Known for 3 of 4" in versions_said(recorded, digest)
    died_in(recorded, "app-2", 5)
    said = versions_said(recorded, digest)
    assert "More than one version fails" in said
    assert "does not fail" not in said


def test_version_started_after_the_first_death_is_not_its_beginning(recorded: Recorded) -> None:
    process("app-1", "3.4.1", 40)
    digest = died_in(recorded, "app-1", 30)
    recorded.connection.run(
        "update messages.message_archive set died_at = now() - interval '3 hours', resolution = 'discarded',"
        " resolved_at = now(), resolved_by = 'ana' where id = (select max(id) from messages.message_archive)"
    )
    died_in(recorded, "app-1", 20)
    said = versions_said(recorded, digest)
    assert "Began with" not in said
    assert "was before it started" in said
    assert "No other version of ours handled messages meanwhile" in said


def test_in_an_update_a_host_with_two_versions_tells_nothing(recorded: Recorded) -> None:
    process("app-1", "3.4.1", 40)
    process("app-1", "3.4.0", 300)
    assert versions_said(recorded, died_in(recorded, "app-1", 30)) == ""


def test_headers_tell_versions_beside_other_messages_of_the_time(recorded: Recorded) -> None:
    for minutes in (30, 20, 10):
        digest = died_in(recorded, "x", minutes, {"Shop.Version": "3.4.1", "NServiceBus.Version": "9.0"})
    other = {"exception_type": "Shop.Other"}
    for minutes, version in ((25, "3.4.0"), (15, "3.4.0"), (15, "3.4.1"), (900, "3.3.0")):
        died_in(recorded, "x", minutes, {"Shop.Version": version, "NServiceBus.Version": "8.0"}, **other)
    said = versions_said(recorded, digest)
    assert "Shop. Version 3.4.1 3 1 Shop. Version 3.4.0 0 2" in said
    assert "3.3.0" not in said
    assert "9.0" not in said
    rule = MaskingRule.objects.create(name="v", kind="header", pattern="Shop.Version")
    assert versions_said(recorded, digest) == ""
    rule.delete()


def test_page_claims_nothing_of_versions_for_unknown_messages(recorded: Recorded) -> None:
    process("app-1", "3.4.1", 40)
    process("app-2", "3.4.0", 300)
    digest, *_ = [died_in(recorded, host, minutes) for host, minutes in (("app-9", 35), ("app-1", 30))]
    said = versions_said(recorded, digest)
    assert "Known for 1 of 2" in said
    assert "Began with" not in said  # the first died elsewhere
    assert "All died in" not in said
    assert "does not fail" not in said  # one may have died in it
    assert "none is known to have died there" in said


def test_a_process_that_says_no_version_may_have_had_it(recorded: Recorded) -> None:
    process("app-1", "3.4.1", 40)
    process("app-1", "", 40)
    assert versions_said(recorded, died_in(recorded, "app-1", 30)) == ""


def test_of_more_messages_than_are_compared_no_version_is_said_to_be_free(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    process("app-1", "3.4.1", 40)
    process("app-2", "3.4.0", 300)
    digest, *_ = [died_in(recorded, host, minutes) for host, minutes in (("app-2", 30), ("app-1", 20), ("app-1", 10))]
    monkeypatch.setattr(failure_groups, "MEMBERS", 2)
    said = versions_said(recorded, digest)
    assert "does not fail" not in said
    assert "All died in" not in said


def test_messages_without_a_version_read_no_others(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def beside(*about: Any) -> list[Any]:
        asked.append(about)
        return []

    monkeypatch.setattr(failure_groups, "beside", beside)
    died_in(recorded, "x", 30)
    assert versions_said(recorded, died_in(recorded, "x", 10)) == ""
    assert not asked
    versions_said(recorded, died_in(recorded, "x", 10, {"Shop.Version": "1"}))
    assert asked


def test_comparison_reads_a_bounded_number_of_other_messages(recorded: Recorded) -> None:
    digest = died_in(recorded, "x", 50)
    columns = "created_at, archived_at, result, handled_by, queue, headers, exception_type, fingerprint, kind"
    recorded.connection.run(
        f"insert into messages.message_archive ({columns}, message, died_at) select {columns}, '{{}}',"
        " died_at + make_interval(secs => n / 100.0)"
        " from messages.message_archive, generate_series(1, 40000) n where fingerprint = %(digest)s",
        {"digest": digest},
    )
    recorded.connection.run("vacuum analyze messages.message_archive")
    figures = failure_groups.group(recorded.connection, digest)
    assert figures
    sql = postgresql().failure_groups
    asked = {
        "fingerprint": digest, "queue": '"public"."Billing"', "most": failure_groups.BESIDE,
        "read": failure_groups.READ, "since": figures.first_at, "until": figures.last_at,
    }  # fmt: skip
    plan = executed(recorded.connection, sql.beside(seen=sql.everywhere), asked)
    assert plan.blocks < 500


def test_of_many_failures_of_a_warning_a_mail_tells_a_few_words(recorded: Recorded) -> None:
    words = ["ash", "bay", "cedar", "date", "elm"]
    for minutes, word in enumerate(words, 1):
        digest = died_in(recorded, "x", minutes, exception_message=f"no {word}")
        noted = database_clock.now() - timedelta(days=minutes)
        FailureGroup.objects.create(pk=digest, exception="Shop.Versioned", note=word, noted_at=noted)
    alert = Alert(pk=1, kind="dead_message", queue='"public"."Billing"', cause="Shop.Versioned")
    of = failures_of.find([alert])[1]
    assert len(of.fingerprints) == len(words)
    assert [group.note for group in of.said] == words[:3]


def test_failures_of_a_partial_look_are_not_called_all(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    for minutes, word in ((9, "ash"), (2, "bay"), (1, "bay")):
        died_in(recorded, "x", minutes, exception_message=f"no {word}")
    about = {"kind": "dead_message", "queue": '"public"."Billing"', "cause": "Shop.Versioned", "severity": "critical"}
    now = database_clock.now()
    alert = Alert.objects.create(**about, subject="s", sentence="x", value="3 dead", opened_at=now, last_seen_at=now)
    assert len(failures_of.find([alert])[alert.pk].fingerprints) == 2

    def drawn() -> str:
        return " ".join(
            render_to_string(
                "pgqueue_admin/overview/causes.html", {"causes": _causes([alert], failures_of.find([alert]))}
            ).split()
        )

    assert "2 failures<" in drawn()
    assert "among the newest" not in drawn()
    monkeypatch.setattr(failure_groups, "MEMBERS", 2)
    of = failures_of.find([alert])[alert.pk]
    assert (len(of.fingerprints), of.newest) == (1, 2)
    assert "1 failure among the newest 2" in drawn()
    assert metrics.links_of(alert, of)[1].label.startswith("The failure of the newest 2")


EVIL = "\u202e</td><script>alert(1)</script>\x07"


def test_names_of_strangers_turn_nothing_around(recorded: Recorded) -> None:
    process(f"app-1{EVIL}", f"3.4{EVIL}"[:64], 40)
    for value in ("1", "2"):
        headers = {f"{EVIL}Version": f"{EVIL}{value}", f"{'x' * 9000}Version": value * 5000, "a\nVersion": value}
        digest = died_in(recorded, f"app-1{EVIL}", 10, headers)
    group = Group.objects.create(name=EVIL)
    TeamFailure.objects.create(fingerprint=digest, team=[group.pk], owner=EVIL, ticket=EVIL, note=EVIL)
    AuditEntry.objects.create(who="ana", verb="purge", noun="message", subject=f'"public"."{EVIL}"', origin="console")
    said = versions_said(recorded, digest)
    assert "3.4" in said
    for path in (f"/failures/{digest}/", "/failures/", "/"):
        page = shown(recorded.viewer, path)
        assert not {"\u202e", "\x07"} & set(page), path
        assert "<script>alert" not in page


def test_causes_of_many_are_asked_together(recorded: Recorded) -> None:
    digests = list(recounted(recorded))
    assert len(digests) > 2
    asked = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(recorded.connection, name)

    found = groups.causes(Counting(), digests)
    assert found.keys() == set(digests)
    assert all(each.first_at for each in found.values())
    assert len(asked) < len(digests)


def test_assignment_outlives_the_messages_of_its_failure(recorded: Recorded, largest: str) -> None:
    said = {"owner": "Shop team", "ticket": "https://tickets.example/SHOP-1", "note": "Waits for 7.2.1"}
    assert recorded.operator.post(f"/failures/{largest}/assignment/", said).status_code == 303
    recorded.connection.run(
        "update messages.message_archive set resolution = 'retried' where fingerprint = %(f)s", {"f": largest}
    )
    recorded.connection.run("delete from messages.message_archive where fingerprint = %(f)s", {"f": largest})
    page = shown(recorded.operator, f"/failures/{largest}/")
    assert "Waits for 7.2.1" in page
    assert 'href="https://tickets.example/SHOP-1"' in page
    assert "none of its messages now" in page
    entry = AuditEntry.objects.get(noun="failure")
    assert (entry.who, entry.verb, entry.subject, entry.after) == ("ana", "set", largest, said)


@pytest.mark.parametrize("ticket", ["javascript:alert(1)", "SHOP-1", "<script>x</script>"])
def test_only_an_address_of_the_web_is_a_link(recorded: Recorded, largest: str, ticket: str) -> None:
    recorded.operator.post(f"/failures/{largest}/assignment/", {"ticket": ticket, "note": "<script>y</script>"})
    for page in (shown(recorded.operator, f"/failures/{largest}/"), shown(recorded.operator, "/failures/")):
        assert f'href="{ticket}' not in page
        assert "<script>x" not in page
        assert "<script>y" not in page


def test_take_makes_the_person_owner(recorded: Recorded, largest: str) -> None:
    recorded.operator.post(f"/failures/{largest}/assignment/", {"note": "kept"})
    recorded.operator.post(f"/failures/{largest}/assignment/", {"take": "yes"})
    group = FailureGroup.objects.get(pk=largest)
    assert (group.owner, group.note) == ("ana", "kept")
    assert largest in LISTED.findall(shown(recorded.operator, "/failures/?owner=ana"))
    assert largest not in LISTED.findall(shown(recorded.operator, nobodys(shown(recorded.operator, "/failures/"))))


def nobodys(page: str) -> str:
    """The target of the link."""
    return "/failures/" + matched(r'href="(\?owner=[^"]*)"[^>]*>owner nobody<', page)


@pytest.mark.parametrize("owner", ["none", "nobody", " nobody"])
def test_an_owner_by_any_name_is_not_nobody(recorded: Recorded, largest: str, owner: str) -> None:
    recorded.operator.post(f"/failures/{largest}/assignment/", {"owner": owner})
    page = shown(recorded.operator, "/failures/")
    assert largest in LISTED.findall(shown(recorded.operator, f"/failures/?owner={owner.strip()}"))
    others = LISTED.findall(shown(recorded.operator, nobodys(page)))
    assert others
    assert largest not in others


def test_an_acknowledgement_ends_by_time_by_count_or_at_twice_as_many(recorded: Recorded) -> None:
    now = database_clock.now()
    until = FailureGroup(acknowledged_at=now, acknowledged_until=now + failure_groups.DAY, acknowledged_dead=10)
    count = FailureGroup(acknowledged_at=now, acknowledged_to=15, acknowledged_dead=10)
    known = [until.is_acknowledged(dead, now) for dead in (10, 19, 20)]
    assert known == [True, True, False]
    assert not until.is_acknowledged(10, now + failure_groups.DAY)
    assert [count.is_acknowledged(dead, now) for dead in (14, 15)] == [True, False]


def test_a_search_opens_no_acknowledgement_and_ends_none(recorded: Recorded) -> None:
    """It ends by the dead messages of the whole group, not by those that a search found."""
    for _ in range(3):
        died(recorded, "f" * 16, "1 hour", queue='"public"."Sales"')
        died(recorded, "f" * 16, "1 hour", queue='"public"."Billing"')
    known = FailureGroup.objects.create(fingerprint="f" * 16, exception="Boom", acknowledged_at=database_clock.now())
    for to, is_grey in ((6, False), (7, True)):
        FailureGroup.objects.filter(pk=known.pk).update(acknowledged_to=to)
        for address in ("/failures/", "/failures/?q=queue:Sales"):
            page = shown(recorded.viewer, address)
            assert (f'class="grey" id="f{known.pk}"' in page) == is_grey, (to, address)


def test_an_acknowledged_group_is_grey_and_opens_again(recorded: Recorded, largest: str) -> None:
    address = f"/failures/{largest}/acknowledgement/"
    assert recorded.operator.post(address, {"until": "4 h", "reason": "known"}).status_code == 303
    page = shown(recorded.operator, "/failures/")
    assert re.search(rf'class="grey" id="f{largest}"', page)
    assert "in 1 group, acknowledged" in page
    recorded.operator.post(address, {"withdraw": "yes"})
    assert not re.search(rf'class="grey" id="f{largest}"', shown(recorded.operator, "/failures/"))
    assert [entry.verb for entry in AuditEntry.objects.filter(noun="failure")] == ["withdraw", "acknowledge"]


def test_retry_to_another_queue_leads_to_a_rule_and_back(recorded: Recorded) -> None:
    died(recorded, "f" * 16, "1 hour", queue='"public"."Billing"')
    here = f"/failures/{'f' * 16}/"
    page = recorded.operator.get(here).content.decode()
    [way] = re.findall(r'<a class="b" href="([^"]+)">Retry to another queue…</a>', page)
    asked = unescape(way)
    form = unescape(recorded.operator.get(asked.partition("#")[0]).content.decode())
    assert 'value=""public"."Billing""' in form
    typed = {"queue": '"public"."Billing"', "target": '"public"."Sales"', "message_type": "", "reason": "renamed"}
    Queue.objects.get_or_create(schema="public", table="Sales", defaults={"kind": "input"})
    answer = recorded.operator.post("/settings/retry-rules/", {**typed, "next": here})
    assert (answer.status_code, answer["Location"]) == (303, here)
    abroad = recorded.operator.post(
        "/settings/retry-rules/", {**typed, "message_type": "Shop.*", "next": "//evil.example/"}
    )
    assert abroad["Location"] == "/settings/retry-rules/"
    assert "Retry to another queue…" not in recorded.viewer.get(here).content.decode()


@pytest.mark.parametrize("typed", [{"until": "200 days"}, {"until": "soon"}, {"count": "1"}, {"until": ""}])
def test_an_acknowledgement_without_an_end_is_none(recorded: Recorded, largest: str, typed: dict[str, str]) -> None:
    recorded.operator.post(f"/failures/{largest}/acknowledgement/", typed)
    assert not FailureGroup.objects.exclude(acknowledged_at=None).exists()


def test_acts_without_the_right_change_nothing(recorded: Recorded, largest: str) -> None:
    page = shown(recorded.viewer, f"/failures/{largest}/")
    assert "Assigning needs the right" in page
    for name, typed in (
        ("assignment", {"owner": "ivo"}),
        ("assignment", {"take": "x"}),
        ("acknowledgement", {"until": "4 h"}),
    ):
        assert recorded.viewer.post(f"/failures/{largest}/{name}/", typed).status_code == 303
    assert recorded.viewer.get(f"/failures/{largest}/assignment/").status_code == 405
    assert not FailureGroup.objects.exists()
    assert not AuditEntry.objects.filter(noun="failure").exists()


@pytest.mark.parametrize("act", ["retry", "discard"])
def test_a_group_is_frozen_whole(recorded: Recorded, largest: str, act: str) -> None:
    page = shown(recorded.operator, f"/failures/{largest}/")
    assert re.search(rf'name="q" value="state:dead fp:{largest}"', page)
    recorded.operator.post("/operations/", {"act": act, "all": "matching", "q": f"state:dead fp:{largest}"})
    operation = Operation.objects.get()
    assert (operation.kind, operation.count) == (act, recounted(recorded)[largest])
    assert operation.selection == f"state:dead fp:{largest}"


def test_looking_writes_nothing(recorded: Recorded, largest: str) -> None:
    for address in ("/failures/", f"/failures/{largest}/", "/failures/?by=type"):
        shown(recorded.viewer, address)
    assert not FailureGroup.objects.exists()


def test_the_search_of_a_failure_is_the_archives(recorded: Recorded, largest: str) -> None:
    found = store.count(recorded.connection, ArchiveFilter(fingerprint=largest), 10_000)
    assert found == (recounted(recorded)[largest], False)


def chosen(recorded: Recorded, most: int = 2) -> tuple[str, list[str]]:
    """The address that the bulk bar leads to, and the groups it names."""
    digests = list(recounted(recorded))[:most]
    return "/failures/chosen/?" + "&".join(f"f={each}" for each in digests), digests


def test_several_are_ticked_named_and_counted(recorded: Recorded) -> None:
    page = shown(recorded.operator, "/failures/")
    address, digests = chosen(recorded)
    assert all(f'name="f" value="{each}" form="chosen"' in page for each in digests)
    dead = sum(recounted(recorded)[each] for each in digests)
    assert re.search(rf"2 failures, {dead:,} dead messages, in \w+", shown(recorded.operator, address))


def test_several_are_assigned_and_what_is_left_empty_stays(recorded: Recorded) -> None:
    address, digests = chosen(recorded)
    recorded.operator.post(f"/failures/{digests[0]}/assignment/", {"owner": "Tomas", "ticket": "T-7", "note": "old"})
    recorded.operator.post(address, {"act": "assign", "owner": "Ana", "ticket": "", "note": ""})
    first, second = (FailureGroup.objects.get(pk=each) for each in digests)
    assert [(each.owner, each.ticket, each.note) for each in (first, second)] == [
        ("Ana", "T-7", "old"),
        ("Ana", "", ""),
    ]
    entries = AuditEntry.objects.filter(noun="failure", verb="set", subject__in=digests)
    assert [entry.after for entry in entries[:2]] == [{"owner": "Ana"}] * 2


def test_several_are_acknowledged_each_by_its_own_end(recorded: Recorded) -> None:
    address, digests = chosen(recorded)
    counts = recounted(recorded)
    most = max(counts[each] for each in digests)
    assert min(counts[each] for each in digests) < most
    recorded.operator.post(address, {"act": "acknowledge", "count": str(most)})
    page = shown(recorded.operator, "/failures/")
    assert "1 failure acknowledged." in page
    assert f"Nothing was acknowledged. Choose a count above the {most:,} that are dead now." in page
    known = {each: FailureGroup.objects.filter(pk=each).exclude(acknowledged_at=None).exists() for each in digests}
    assert known == {each: counts[each] < most for each in digests}


@pytest.mark.parametrize("fields", [{"act": "assign"}, {"act": "acknowledge", "until": "yesterday"}, {}])
def test_a_form_that_says_nothing_changes_nothing(recorded: Recorded, fields: dict[str, str]) -> None:
    address, digests = chosen(recorded)
    assert recorded.operator.post(address, fields).status_code == 200
    assert not AuditEntry.objects.filter(noun="failure", subject__in=digests).exists()


def test_several_ask_for_the_right(recorded: Recorded) -> None:
    assert 'form="chosen"' not in shown(recorded.viewer, "/failures/")
    address, digests = chosen(recorded)
    assert "needs the right" in shown(recorded.viewer, address)
    page = recorded.viewer.post(address, {"act": "assign", "owner": "Ana"}, follow=True).content.decode()
    assert "Nothing was changed. Assigning needs the right" in page
    assert not FailureGroup.objects.filter(pk__in=digests, owner="Ana").exists()


def test_several_are_retried_in_one_operation(recorded: Recorded) -> None:
    address, digests = chosen(recorded)
    page = shown(recorded.operator, address)
    asked = "select count(*) from messages.message_archive where state = 'dead' and fingerprint = any (%s)"
    dead = recorded.connection.value(asked, [digests])
    assert f"Retry {dead:,} in stages…" in page
    q = re.search(r'name="q" value="([^"]+)"', page)
    assert q
    posted = {"act": "retry", "all": "matching", "q": unescape(q[1])}
    answer = recorded.operator.post("/operations/", posted)
    operation = Operation.objects.get()
    assert answer["Location"] == f"/operations/{operation.pk}/"
    assert (operation.count, operation.state) == (dead, "frozen")
    assert "Careful" in shown(recorded.operator, answer["Location"])
    assert "Can retry dead messages" in shown(recorded.viewer, address)


def test_too_many_for_one_search_are_not_offered(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_page, "MOST_RETRIED", 1)
    page = shown(recorded.operator, chosen(recorded)[0])
    assert "At most 1 failures are retried in one operation" in page
    assert 'value="retry"' not in page


@pytest.mark.parametrize("address", ["/failures/chosen/", "/failures/chosen/?f=9&f=x%27&f=0123456789abcdef"])
def test_empty_choice_says_how_to_choose(recorded: Recorded, address: str) -> None:
    assert "No failure is chosen" in shown(recorded.operator, address)
