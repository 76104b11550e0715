"""Whoever may not act, and whoever is tricked into it, changes nothing and is told so."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from pgqueue_admin.formatting.crossings import DECISIONS
from pgqueue_admin.models import AuditEntry, Endpoint, FailureGroup, MaskingRule, Operation, RetryRule
from pgqueue_admin.services import leases
from pgqueue_admin.services.waiting_messages import ACTS
from tests.hostile import crawl, markup
from tests.hostile.hostile_site import World
from tests.hostile.payloads import MARKUP, NAMES, QUERIES, TURNED

ELSEWHERE = (
    "https://evil.example/", "//evil.example/", "///evil.example", "/\\evil.example", "\\\\evil.example", "http:evil",
    "javascript:pwned()", "/\t/evil.example", "https:///evil.example", "//127.0.0.1@evil.example/",
    "\x01//evil.example",
    "https://testserver@evil.example", "http://testserver.evil.example/",
)  # fmt: skip
RIGHTLESS = "needs the right “Can "
# acts that need no right: one's own choices, signing in and out, one's own password
FREE = {"person", "sign_in", "sign_out", "admin:login", "admin:logout", "admin:password_change", "admin:index"}
BY_TOKEN = {"post_mark"}  # of programs: a sign-in says nothing there (tests/api/test_marks.py)
FILES = {"audit_export", "archive_export"}  # answer with one, and read each field by itself
FREE |= {"endpoint_effect", "schedule_read"}  # say what a form would do, and save nothing
FREE |= {"columns"}  # which of them one wants to see


def posts(world: World) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, path and fields of every address that takes a POST of ours."""
    dead = world.dead
    sales = {"schema": "public", "table": "Sales"}
    entry = AuditEntry.objects.filter(noun="endpoint")[0].pk
    name = Endpoint.objects.filter(ours=True).values_list("name", flat=True).first()
    frozen = Operation.objects.get(state="frozen").pk
    staged = Operation.objects.get(plan__isnull=False).pk
    failure = FailureGroup.objects.values_list("pk", flat=True)[0]
    rule = MaskingRule.objects.values_list("pk", flat=True)[0]
    ended = AuditEntry.objects.filter(verb="unsubscribe").values_list("pk", flat=True)[0]
    to_sales = {"target": '"public"."Sales"'}
    settings = {"peek_delay_ms": "2 s", "concurrency": 3, "immediate_retries": 1, "on_exhausted": "archive"}
    return [
        ("operations", reverse("operations"), {"act": "retry", "id": dead[:3]}),
        ("operations", reverse("operations"), {"act": "discard", "id": dead[:1], "at_once": "yes"}),
        ("operations", reverse("operations"), {"act": "restore", "all": "matching", "q": "state:discarded"}),
        ("operations", reverse("operations"), {"act": "call back", "operation": staged}),
        ("operations", reverse("operations"), {"act": "restore and retry", "id": dead[:1]}),
        ("operations", reverse("operations"), {"act": "purge", **sales}),
        ("operation_start", reverse("operation_start", args=[frozen]), {"count": "30", "reason": "x"}),
        (
            "operation_edit",
            reverse("operation_edit", args=[frozen]),
            {"part": "header", "name": "T", "way": "add", "new": "x"},
        ),
        ("operations", reverse("operations"), {"act": "edit and retry", "id": dead[:2]}),
        ("operation_cancel", reverse("operation_cancel", args=[frozen]), {}),
        ("copy_archived", reverse("copy_archived", args=[dead[0]]), {"target": '"public"."Sales"'}),
        (
            "copy_waiting",
            reverse("copy_waiting", args=[*world.waiting[0][0], world.waiting[0][1]]),
            {"target": '"public"."Sales"'},
        ),
        ("retry_rules", reverse("retry_rules"), {"message_type": "Shop.*", **to_sales}),
        ("lease_rules", reverse("lease_rules"), {"message_type": "render", "failed": "on", "times": "1", "wait": "60"}),
        ("lease_rule_remove", reverse("lease_rule_remove", args=[1]), {}),
        ("retry_rule_remove", reverse("retry_rule_remove", args=[RetryRule.objects.get().pk]), {}),
        ("operation_pause", reverse("operation_pause", args=[staged]), {}),
        ("operation_rate", reverse("operation_rate", args=[staged]), {"rate": "5 /s", "before": "20"}),
        ("operation_resume", reverse("operation_resume", args=[staged]), {"reason": "x"}),
        ("trial_new", reverse("trial_new"), {"id": dead[:2], "reason": "x"}),
        ("trial_new", reverse("trial_new"), {"operation": frozen}),
        ("alert_acknowledgement", reverse("alert_acknowledgement", args=[1]), {}),
        ("alert_acknowledge", f"{reverse('alert_acknowledge')}?n=1", {"until": "1 h", "reason": "x"}),
        ("alert_acknowledgements", reverse("alert_acknowledgements"), {"alerts": "1"}),
        ("alert_mails", reverse("alert_mails"), {}),
        ("endpoints", reverse("endpoints"), {"name": "Foreign", "queue": "Sales", "peek_delay_ms": "1 s"}),
        ("endpoint_settings", reverse("endpoint_settings", args=[name]), {**settings, "drain_seconds": "9 s"}),
        ("endpoint_effect", reverse("endpoint_effect", args=[name]), settings),
        *((f"endpoint_{verb}", reverse(f"endpoint_{verb}", args=[name]), {"processes": 2}) for verb in VERBS),
        ("endpoint_undo", reverse("endpoint_undo", args=[name, entry]), {}),
        ("queue_settings", reverse("queue_settings", kwargs=sales), {"target_depth": 7}),
        ("queue_settings_undo", reverse("queue_settings_undo", kwargs={**sales, "entry_id": entry}), {}),
        ("move_out", reverse("move_out", args=[world.waiting[0][1]]), {"reason": "x"}),
        *(
            (
                "waiting_acts",
                reverse("waiting_acts", kwargs=sales),
                {"act": act, "id": f"{UUID(int=1)}:1", "sure": "yes"},
            )
            for act in ACTS
        ),
        ("queue_send", reverse("queue_send", kwargs=sales), {"type": "Shop.Ping", "body": "{}"}),
        ("subscribe_again", reverse("subscribe_again", args=[ended]), {}),
        ("unsubscribe", reverse("unsubscribe"), {**ROUTING, "endpoint": "x", "sure": "yes"}),
        ("host_give_up", reverse("host_give_up", args=[MARKUP[:190]]), {}),
        ("history_run", reverse("history_run"), {}),
        ("history_cancel", reverse("history_cancel"), {}),
        ("history_recompute", reverse("history_recompute"), {"since": "2026-11-14", "until": "2026-11-15"}),
        ("schedule_new", reverse("schedule_new"), SCHEDULE),
        ("schedule_read", reverse("schedule_read"), SCHEDULE),
        *((f"schedule_{verb}", reverse(f"schedule_{verb}", args=[1]), {}) for verb in OF_SCHEDULE),
        ("lease_publish", reverse("lease_publish", kwargs=crawl.LEASES), {"message": "{}"}),
        *(
            (
                "lease_acts",
                reverse("lease_acts", kwargs=crawl.LEASES),
                {"act": act, "id": "1:", "sure": "yes", "reason": "x"},
            )
            for act in leases.ACTS
        ),
        *((name, reverse(name, kwargs={**crawl.LEASES, "number": 1}), {"reason": "x"}) for name in OF_LEASES),
        ("outbox_dispatch", reverse("outbox_dispatch", kwargs=crawl.OF_OUTBOX), {"reason": "x"}),
        ("outbox_allow", reverse("outbox_allow", kwargs=crawl.OF_OUTBOX), {"allow": "yes", "reason": "x"}),
        (
            "admin:pgqueue_outbox_dispatch",
            reverse("admin:pgqueue_outbox_dispatch"),
            {**crawl.OF_OUTBOX, "record": "x", "go": "x", "reason": "x"},
        ),
        (
            "outbox_keep",
            reverse("outbox_keep", kwargs=crawl.OF_OUTBOX),
            {"relay": "on", "relay_after": "5 min", "clean_up": "on", "keep": "7 days", "reason": "x"},
        ),
        ("audit_export", reverse("audit_export"), {"q": "who:ana"}),
        ("archive_export", reverse("archive_export"), {"q": "state:dead"}),
        ("failure_assignment", reverse("failure_assignment", args=[failure]), {"owner": "x", "note": "x"}),
        ("failure_assignment", reverse("failure_assignment", args=[failure]), {"take": "yes"}),
        ("failures_chosen", f"{reverse('failures_chosen')}?f={failure}", {"act": "assign", "owner": "x"}),
        ("failures_chosen", f"{reverse('failures_chosen')}?f={failure}", {"act": "acknowledge", "until": "1 h"}),
        ("failure_acknowledgement", reverse("failure_acknowledgement", args=[failure]), {"until": "1 h"}),
        ("failure_acknowledgement", reverse("failure_acknowledgement", args=[failure]), {"withdraw": "yes"}),
        (
            "admin:pgqueue_failuregroup_changelist",
            reverse("admin:pgqueue_failuregroup_changelist"),
            {"action": "take", "_selected_action": [failure]},
        ),
        *(
            ("crossing_decide", reverse("crossing_decide", args=[1]), {"decision": decision, "reason": "x"})
            for decision in DECISIONS
        ),
        ("columns", reverse("columns"), {"cols": "OrderId", "of": "WyJhIixbIk9yZGVySWQiXV0"}),
        ("views", reverse("views"), {"of": "archive", "query": "q=", "name": "x", "shared": "yes"}),
        ("view_rename", reverse("view_rename", args=["listed"]), {"name": "x"}),
        ("view_default", reverse("view_default", args=["listed"]), {}),
        ("view_remove", reverse("view_remove", args=["listed"]), {}),
        ("masking", reverse("masking"), MASKING),
        ("masking_rule", reverse("masking_rule", args=[rule]), {**MASKING, "version": "1"}),
        ("masking_rule", reverse("masking_rule", args=[rule]), {"remove": "yes", "version": "1"}),
        ("masking_reveal", reverse("masking_reveal"), {"reason": "x"}),
        ("person", reverse("person"), {"theme": "dark"}),
        ("sign_out", reverse("sign_out"), {}),
        ("admin:logout", reverse("admin:logout"), {}),
        ("admin:pgqueue_operation_confirm", reverse("admin:pgqueue_operation_confirm", args=[frozen]), {"go": "1"}),
        (
            "admin:pgqueue_archivedmessage_changelist",
            reverse("admin:pgqueue_archivedmessage_changelist"),
            {"action": "retry", "_selected_action": dead[:2]},
        ),
    ]


@pytest.fixture(autouse=True, scope="module")
def masking_rule(world: World) -> None:
    MaskingRule.objects.create(name="Nothing", kind="header", pattern=MARKUP)


MASKING = {"name": "Cards", "kind": "header", "pattern": "Shop.*", "reason": "x"}
ROUTING = {"schema": "public", "table": "SubscriptionRouting"}
SCHEDULE = {"name": "Nightly", "to": "Sales", "message_type": "Shop.Ping", "message": "{}", "expression": "0 3 * * *"}
OF_SCHEDULE = ("pause", "resume", "run", "remove")
OF_LEASES = ("lease_release", "lease_end")
VERBS = ("start", "stop", "scale", "pause", "resume", "restart", "withdraw")


def test_every_act_of_the_crawl_is_posted_here(world: World) -> None:
    assert {name for name, _, _ in posts(world)} >= crawl.ACTS - BY_TOKEN


def test_no_act_without_the_forms_own_token(world: World) -> None:
    client, before = world.client("root", enforce_csrf_checks=True), world.state()
    for name, path, fields in posts(world):
        answer = client.post(path, fields)
        assert answer.status_code == 403, (name, answer.status_code)
        if not name.startswith("admin:"):
            assert "Nothing was changed" in answer.content.decode()
    assert world.state() == before


def test_no_act_of_strangers(world: World) -> None:
    client, before = Client(), world.state()
    for name, path, fields in posts(world):
        answer = client.post(path, fields)
        assert answer.status_code == 302 or name in FREE, name
        assert name in FREE or answer["Location"].startswith(("/sign-in/?next=/", "/admin/login/?next=/")), name
    assert world.state() == before


def test_no_act_without_the_right(world: World) -> None:
    before = world.state()
    for name, path, fields in posts(world):
        if name in FREE:
            continue
        client = world.client("viewer")
        answer = client.post(path, fields, follow=True)
        assert answer.status_code in {200, 403}, (name, answer.status_code)
        if not name.startswith("admin:"):
            assert RIGHTLESS in answer.content.decode(), (name, fields)
    after = world.state()
    assert {name for name, was in before.items() if after[name] != was} <= {'"public"."auth_user"'}


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_nobody_is_sent_elsewhere(world: World, wanted: str) -> None:
    client = world.client("viewer")
    for path in ("/me/", "/operations/", "/endpoints/CAPITALS/start/", "/alerts/1/acknowledgement/"):
        assert client.post(path, {"next": wanted})["Location"].startswith("/"), path
        assert "evil" not in client.post(path, {"next": wanted})["Location"]
    person = {"username": "viewer", "password": "of the tests", "next": wanted}
    for path in ("/sign-in/", f"/sign-in/?next={wanted}", f"/admin/login/?next={wanted}"):
        answer = Client().post(path, person)
        assert answer.status_code == 302
        assert "evil" not in answer["Location"], path
        assert answer["Location"].startswith("/")
        assert not answer["Location"].startswith(("//", "/\\"))


def test_garbage_in_forms_is_refused_and_kept_out(world: World) -> None:
    """An operator's own mistakes: each is answered with a page, and nothing becomes markup."""
    client, garbage = world.client("operator"), (*QUERIES, *NAMES[:4], MARKUP, TURNED)
    for name, path, fields in posts(world):
        if name in FREE or name in {"operation_cancel", "operation_start", "endpoint_withdraw", *FILES}:
            continue
        for turn in range(0, len(garbage), 6):
            wrong = {key: garbage[(turn + place) % len(garbage)] for place, key in enumerate((*fields, "reason", "id"))}
            wrong |= {"act": fields["act"]} if "act" in fields else {}
            answer = client.post(path, {**wrong, "version": garbage[turn], "next": garbage[turn]}, follow=True)
            assert answer.status_code in {200, 403, 404, 422}, (name, wrong)
            assert markup.read(answer.content.decode()).foreign == [], name


def test_an_act_on_what_is_not_there(world: World) -> None:
    client, before = world.client("operator"), world.state()
    for path in (
        "/operations/999999/start/", "/operations/999999/cancel/", "/operations/999999/pause/",
        "/operations/999999/resume/", "/operations/1/pause/", "/alerts/999999/acknowledgement/",
        "/endpoints/nobody/start/", "/endpoints/nobody/settings/", "/endpoints/CAPITALS/undo/999999/",
        "/settings/queues/public/nothing/", "/settings/queues/public/Sales/undo/999999/",
        f"/operations/{'9' * 30}/start/", f"/endpoints/CAPITALS/undo/{'9' * 30}/",
    ):  # fmt: skip
        assert client.post(path, {}, follow=True).status_code in {200, 404}, path
    answer = client.post("/operations/", {"act": "discard", "id": ["2147483647"], "at_once": "yes"}, follow=True)
    assert "no longer in the archive" in answer.content.decode()
    assert world.state() == before
