"""The audit page: who did what, found by any field, and exported to a file that is safe in a spreadsheet."""

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pgqueue_admin.models import AuditEntry, Endpoint, Queue

HOSTILE = "<script>alert(1)</script>\u202e"


def entry(**about: Any) -> AuditEntry:
    known = {"who": "ana", "verb": "retry", "noun": "message", "subject": '"public"."Billing"', "origin": "console"}
    return AuditEntry.objects.create(**{**known, **about})


@pytest.fixture(autouse=True)
def entries(console_database: str) -> None:
    entry(count=564, reason="SHOP-2417 is fixed", operation_id=431)
    entry(verb="set", noun="endpoint", subject="Orders", before={"concurrency": 2}, after={"concurrency": 4}, who="Ivo")
    entry(verb="stop", noun="endpoint", subject="Orders", origin="admin", who="Ivo", reason="8.1.0 calls stock twice")
    entry(verb="edit", after={"archive_id": 7, "message_id": "m-2"}, who="Tomas Berg")


def shown(client: Client, q: str = "", **more: str) -> str:
    answer = client.get("/audit/", {"q": q, **more})
    assert answer.status_code == 200
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


def number(client: Client, q: str) -> int:
    return client.get("/audit/", {"q": q}).content.decode().count('data-l="Who"')


def test_audit_page_says_who_did_what_and_what_changed(as_viewer: Client) -> None:
    said = shown(as_viewer)
    assert "retried 564 messages of Billing" in said
    assert "set Orders − concurrency per process 2 + concurrency per process 4" in said
    assert "SHOP-2417 is fixed" in said
    html = as_viewer.get("/audit/").content.decode()
    for path in ("/operations/431/", "/endpoints/Orders/", "/archive/7/"):
        assert f'href="{path}"' in html


@pytest.mark.parametrize(
    ("verb", "noun", "says"),
    [
        ("create", "retry rule", "created retry rule 7"),
        ("remove", "retry rule", "removed retry rule 7"),
        ("cancel", "operation", "cancelled operation 7"),
        ("pause", "operation", "paused operation 7"),
        ("resume", "operation", "resumed operation 7"),
        ("stop", "operation", "stopped operation 7"),
        ("set", "operation", "set the rate of operation 7"),
    ],
)
def test_entry_with_only_a_number_names_its_object(as_viewer: Client, verb: str, noun: str, says: str) -> None:
    entry(verb=verb, noun=noun, subject="7")
    assert f" {says} " in shown(as_viewer)


def test_rules_of_a_retry_are_said_in_words(as_viewer: Client) -> None:
    entry(after={"rules": [{"number": 7, "queue": "", "target": '"public"."Sales"'}]})
    said = shown(as_viewer)
    words = re.search(r"\+ (rules .*?) console", said)
    assert words
    assert 'target "public"."Sales"' in words[1]
    assert not set("[{'") & set(words[1])


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("", 4),
        ("who:ivo", 2),
        ('who:"Tomas Berg"', 1),
        ("did:stopped", 1),
        ("did:stop", 1),
        ("on:orders", 2),
        ("on:endpoint", 2),
        ("op:431", 1),
        ("from:admin", 1),
        ("SHOP-2417", 1),
        ("who:ivo stock", 1),
        ("since:2001-01-01", 4),
        ("until:2001-01-01", 0),
        ("who:%", 0),
    ],
)
def test_any_part_of_an_entry_finds_it(as_viewer: Client, q: str, found: int) -> None:
    assert number(as_viewer, q) == found


@pytest.mark.parametrize("q", ["since:yesterday", "op:x", "did:flown", "by:ana", "since:-1"])
def test_a_wrong_term_is_named_and_nothing_runs(as_viewer: Client, q: str) -> None:
    said = shown(as_viewer, q)
    assert "Nothing was searched." in said
    assert number(as_viewer, q) == 0


def test_pages_follow_each_other_without_loss(as_viewer: Client) -> None:
    for each in range(60):
        entry(subject=f"queue {each}", noun="history")
    seen, address = 0, "/audit/?q=did:retried"
    while address:
        html = as_viewer.get(address).content.decode()
        seen += html.count('data-l="Who"')
        older = re.search(r'rel="next" href="([^"]+)"', html)
        address = f"/audit/{unescape(older[1])}" if older else ""
    assert seen == 61


def test_empty_says_what_will_be_here(as_viewer: Client) -> None:
    AuditEntry.objects.all().delete()
    assert "Nobody has done anything yet" in shown(as_viewer)
    assert "No entry has this" in shown(as_viewer, "who:nobody")


def exported(client: Client, **asked: str) -> str:
    answer = client.post("/audit/export/", asked)
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return answer.getvalue().decode()


def test_the_export_has_exactly_what_the_filter_finds_and_is_an_entry(as_operator: Client) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(as_operator, q="who:ivo"))))
    assert [(row["verb"], row["who"]) for row in rows] == [("stop", "Ivo"), ("set", "Ivo")]
    assert json.loads(rows[1]["after"]) == {"concurrency": 4}
    taken = AuditEntry.objects.first()
    assert taken is not None
    assert (taken.verb, taken.subject, taken.count) == ("export", "who:ivo", 2)
    lines = exported(as_operator, q="did:retried", format="jsonl").splitlines()
    assert [json.loads(line)["count"] for line in lines] == [564]


def test_a_spreadsheet_runs_nothing_of_it(as_operator: Client) -> None:
    entry(reason='=HYPERLINK("http://example.com")', subject="@SUM(1)", who="+1")
    (row,) = list(csv.DictReader(io.StringIO(exported(as_operator, q="hyperlink"))))
    assert (row["reason"][0], row["subject"][0], row["who"][0]) == ("'", "'", "'")


def test_viewer_exports_nothing(as_viewer: Client) -> None:
    assert "needs the right" in shown(as_viewer)
    answer = as_viewer.post("/audit/export/", {"q": ""}, follow=True)
    assert "Nothing was exported" in answer.content.decode()
    assert AuditEntry.objects.filter(verb="export").count() == 0


def test_hostile_text_stays_text(as_viewer: Client) -> None:
    entry(who=HOSTILE, subject=HOSTILE, reason=HOSTILE, before={HOSTILE: HOSTILE}, after={HOSTILE: HOSTILE})
    html = as_viewer.get("/audit/").content.decode()
    assert "<script>alert" not in html
    assert "\u202e" not in html


def test_audit_needs_a_sign_in(client: Client) -> None:
    assert client.get("/audit/").status_code == 302
    assert client.post("/audit/export/").status_code == 302
    assert AuditEntry.objects.filter(verb="export").count() == 0


def test_each_day_has_one_heading(as_viewer: Client) -> None:
    AuditEntry.objects.filter(verb="stop").update(at=timezone.now() - timedelta(days=3))
    html = as_viewer.get("/audit/").content.decode()
    assert html.count('class="group"') in {2, 3}  # an entry may follow one of a later day


def test_a_filter_that_cannot_be_read_exports_nothing(as_operator: Client) -> None:
    answer = as_operator.post("/audit/export/", {"q": "colour:red"}, follow=True)
    assert "Nothing was exported." in answer.content.decode()
    assert AuditEntry.objects.filter(verb="export").count() == 0


def test_lists_read_no_bodies_and_an_export_has_them(as_operator: Client) -> None:
    both = {"before": "old", "after": "new"}
    entry(verb="edit", subject="of two bodies", bodies=both)
    with CaptureQueriesContext(connection) as asked:
        assert as_operator.get("/audit/").status_code == 200
        assert as_operator.get("/").status_code == 200
    assert not [each["sql"] for each in asked if '"bodies"' in each["sql"]]
    assert json.loads(exported(as_operator, q="on:bodies", format="jsonl"))["bodies"] == {
        "before": "old",
        "after": "new",
    }


def test_a_change_that_stands_is_taken_back_from_here(as_operator: Client, as_viewer: Client) -> None:
    for each in (2, 4):
        Endpoint.objects.update_or_create(name="Billing", defaults={"table": "Billing", "concurrency": each})
    older = entry(verb="set", noun="endpoint", subject="Billing", before={"concurrency": 1}, after={"concurrency": 2})
    newer = entry(verb="set", noun="endpoint", subject="Billing", before={"concurrency": 2}, after={"concurrency": 4})
    html = as_operator.get("/audit/?q=on:Billing").content.decode()
    assert f'action="/endpoints/Billing/undo/{newer.pk}/"' in html
    assert f"/undo/{older.pk}/" not in html, "somebody changed it since"
    assert "/undo/" not in as_viewer.get("/audit/?q=on:Billing").content.decode()
    as_operator.post(f"/endpoints/Billing/undo/{newer.pk}/")
    assert Endpoint.objects.get(name="Billing").concurrency == 2
    assert f"/undo/{newer.pk}/" not in as_operator.get("/audit/?q=on:Billing").content.decode()


def test_a_target_of_a_queue_is_taken_back_from_here(as_operator: Client) -> None:
    queue = Queue.objects.create(schema="public", table="Billing", target_depth=9)
    change = entry(verb="set", noun="queue", before={"target_depth": 3}, after={"target_depth": 9})
    path = f"/settings/queues/public/Billing/undo/{change.pk}/"
    assert f'action="{path}"' in as_operator.get("/audit/?q=did:set").content.decode()
    as_operator.post(path)
    queue.refresh_from_db()
    assert queue.target_depth == 3
    assert f'action="{path}"' not in as_operator.get("/audit/?q=did:set").content.decode()


def narrowed(client: Client, q: str = "") -> dict[str, list[tuple[str, int, str]]]:
    """Per field: the names with their counts and searches."""
    facets = client.get("/audit/", {"q": q, "facets": "open"}).context["narrow"].facets
    return {each.word: [(value.name, value.number, value.q) for value in each.values] for each in facets}


def test_each_facet_finds_the_entries_that_it_counts(as_viewer: Client) -> None:
    entry(who="ANA", verb="discard")
    entry(who="Anabel", subject="Orders.Retries", reason='say "x"')
    found = narrowed(as_viewer)
    today = timezone.now().date().isoformat()
    assert [each[:2] for each in found["Who"]] == [("ana", 2), ("ivo", 2), ("anabel", 1), ("tomas berg", 1)]
    assert found["Did"][0][:2] == ("retried", 2)
    assert {name for name, number, _ in found["Did"] if number == 1} > {"discarded", "stopped"}
    assert found["Day, UTC"][0][:2] == (today, 6)
    for values in found.values():
        for name, number, q in values:
            if q:
                said = shown(as_viewer, q)
                assert re.search(rf"\b{number} entr", said), (name, q, said[:300])
    only = dict((name, q) for name, _, q in found["Who"])["ana"]
    assert dict((name, q) for name, _, q in narrowed(as_viewer, only)["Who"])["ana"] == ""


def test_of_more_than_so_many_entries_the_newest_are_counted(
    as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgqueue_admin.console.audit.facets.CAP", 3)
    html = as_viewer.get("/audit/?facets=open").content.decode()
    assert "Counted in the newest 3 that match; there are older ones." in " ".join(html.split())
    assert "Narrow by person, act, object, day" in as_viewer.get("/audit/").content.decode()
