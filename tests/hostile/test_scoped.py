"""Every address, as somebody whose groups see some queues: nothing of the others is in any answer, nothing is done."""

import asyncio
import difflib
import json
import re
import socket
import uuid
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from pgqueue_admin.archive import ingester, text_index, text_search
from pgqueue_admin.console import navigation, pagination
from pgqueue_admin.console.scopes.addresses import NARROWED, OF_MACHINES
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.live import topics
from pgqueue_admin.live.hub import Hub
from pgqueue_admin.models import (
    Alert,
    AlertMail,
    AuditEntry,
    Endpoint,
    FailureGroup,
    LatestSample,
    Operation,
    PostedMark,
    Process,
    Queue,
    QueueScope,
    RetryRule,
    SavedView,
    Schedule,
    TeamFailure,
)
from pgqueue_admin.services import queue_access, schedules
from pgqueue_admin.services.operations import selection
from pgqueue_admin.services.schedules import Act, ScheduleDraft
from tests.console.pages import matched
from tests.console.sampled import sample
from tests.history.files import TEN, message, write
from tests.history.rollup_factory import failed, rolled_up
from tests.history.rollup_factory import told as became
from tests.hostile import crawl
from tests.hostile.hostile_site import World
from tests.hostile.test_no_read_right import _read, _said

EMPTY = {"endpoint", "queue", "messages", "op", "message", "waiting", "warnings", "rows", "failures"}
FILES = {"archived_body", "archived_headers", "waiting_body"}
MARK = "zq7secret"
SECRET = Address("public", f"{MARK}.Orders")
DELAYED = Address("public", f"{MARK}.Orders.Delayed")
NAME = postgresql().canonical(SECRET)
INSIDE = '"public"."Billing"'
BODY = json.dumps({"order": MARK}).encode()
SEQ = 4_712
SHARED = "c-of-both"


@pytest.fixture(scope="module")
def planted(world: World) -> SimpleNamespace:
    """A queue of a name that stands nowhere else, with what every page could tell of it."""
    for table, create in ((SECRET, postgresql().queue.create), (DELAYED, postgresql().delayed.create)):
        world.queues.run(create(table=table))
    row_id = _send(world, SECRET, _headers())
    late = {"headers": [_headers()], "bodies": [BODY], "ats": [None], "delays_ms": [0]}
    world.queues.run(postgresql().delayed.store(table=DELAYED), late)
    dead, binned = _kill(world, NAME), _kill(world, NAME)
    inside = _kill(world, INSIDE)
    world.queues.run(
        "update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', resolved_at = now()"
        " where id = %(id)s",
        {"id": binned},
    )
    sample(2)
    named: dict[str, Any] = {"endpoint": f"{MARK}.Orders", "queue": NAME, "result": "failed"}
    write(settings.PGQUEUE["HISTORY_DIR"], message(SEQ, headers=_headers(), body=BODY, **named))
    ids = _console(world, dead)
    for number in range(3):  # the subscriber's own name must not tell whose queue it is
        _subscribe(world, f"{MARK}-{number}", SECRET)
    _subscribe(world, "Ledger", Address("public", "Billing"))
    mixed = _of_both(world)
    secret, ours = _scheduled(world)
    _converse(world, "before")
    world.waiting.append((SECRET, row_id))
    world.addresses += [SECRET, DELAYED]
    world.finished.append(("audit", SEQ, TEN))
    places = {str(each) for each in (row_id, dead, binned, SEQ, SECRET.table, DELAYED.table, *ids)}
    return SimpleNamespace(
        row_id=row_id, dead=dead, binned=binned, inside=inside, places=places, operation=ids[0], alert=ids[2],
        group=ids[1], mixed=mixed, schedule=secret, ours=ours,
    )  # fmt: skip


def _headers(**more: str) -> str:
    said = {
        "MessageId": f"{MARK}-1", "ConversationId": f"{MARK}-c", "EnclosedMessageTypes": f"Shop.{MARK}",
        "ContentType": "application/json", "ExceptionInfo.ExceptionType": f"Shop.{MARK}",
        "ExceptionInfo.Message": f"no {MARK}", "OriginatingEndpoint": f"{MARK}.Orders",
        "ProcessingEndpoint": f"{MARK}.Orders",
    }  # fmt: skip
    return json.dumps({f"NServiceBus.{name}": value for name, value in said.items()} | more)


def _send(world: World, table: Address, headers: str, body: bytes = BODY) -> str:
    row_id = uuid.uuid4()
    values = {"id": row_id, "ttbr_ms": None, "headers": headers, "body": body}
    world.queues.run(postgresql().queue.send(table=table), values)
    return str(row_id)


def _subscribe(world: World, endpoint: str, queue: Address) -> None:
    about = {"endpoint": endpoint, "topic": f"Shop.{endpoint}Done", "address": postgresql().canonical(queue)}
    world.queues.run(
        'insert into public."SubscriptionRouting" (queueaddress, endpoint, topic)'
        " values (%(address)s, %(endpoint)s, %(topic)s)",
        about,
    )


def _kill(world: World, queue: str) -> int:
    text = _headers() if queue == NAME else json.dumps({"NServiceBus.EnclosedMessageTypes": "Shop.PlaceOrder"})
    errors = Address("public", "error")
    _send(world, errors, json.dumps(json.loads(text) | {"NServiceBus.FailedQ": queue}))
    while ingester.ingest(world.queues, errors).full:
        pass
    return int(world.queues.value("select max(id) from messages.message_archive"))


def _converse(world: World, said: str) -> dict[Address, str]:
    """Waiting, delayed and dead messages of one conversation in both queues; those of theirs say nothing of it."""
    found = {}
    for table, name in ((Address("public", "Billing"), "Mine"), (SECRET, MARK)):
        headers = {
            "NServiceBus.MessageId": f"{name}-{said}", "NServiceBus.ConversationId": SHARED,
            "NServiceBus.EnclosedMessageTypes": f"Shop.{name}", "NServiceBus.OriginatingEndpoint": name,
            "NServiceBus.ContentType": "application/json",
        }  # fmt: skip
        if name == MARK:
            headers["NServiceBus.RelatedTo"] = "Mine-before"
        found[table] = _send(world, table, json.dumps(headers), b"{}")
        failed = {
            "NServiceBus.ExceptionInfo.ExceptionType": f"Shop.{name}Fault", "NServiceBus.ProcessingEndpoint": name,
            "NServiceBus.FailedQ": postgresql().canonical(table), "NServiceBus.MessageId": f"{name}-{said}-dead",
        }  # fmt: skip
        _send(world, Address("public", "error"), json.dumps({**headers, **failed}), b"{}")
    late = json.dumps({"NServiceBus.MessageId": f"{MARK}-late", "NServiceBus.ConversationId": SHARED})
    world.queues.run(
        postgresql().delayed.store(table=DELAYED),
        {"headers": [late], "bodies": [b"{}"], "ats": [None], "delays_ms": [0]},
    )
    while ingester.ingest(world.queues, Address("public", "error")).full:
        pass
    return found


def _die(world: World, queue: str, said: str, error: str = "Declined") -> int:
    """Of the one failure that happens in both queues; ``said`` stands wherever it does not tell which it is."""
    headers = {
        "NServiceBus.EnclosedMessageTypes": f"Shop.{said}", "NServiceBus.ConversationId": f"{said}-m",
        "NServiceBus.ExceptionInfo.ExceptionType": f"Shop.{error}", "NServiceBus.ExceptionInfo.Message": "declined",
        "NServiceBus.ProcessingEndpoint": said, "NServiceBus.ProcessingMachine": said, "Shop.Said": said,
        "NServiceBus.FailedQ": queue,
    }  # fmt: skip
    errors = Address("public", "error")
    _send(world, errors, json.dumps(headers), json.dumps({"order": said}).encode())
    while ingester.ingest(world.queues, errors).full:
        pass
    return int(world.queues.value("select max(id) from messages.message_archive"))


def _of_both(world: World) -> str:
    """A failure of both queues, with what people said of it and an operation that reached into both."""
    inside, beyond = _die(world, INSIDE, "Mine"), [_die(world, NAME, MARK) for _ in range(3)]
    retried = _die(world, INSIDE, "Mine")
    digest = str(
        world.queues.value("select fingerprint from messages.message_archive where id = %(id)s", {"id": inside})
    )
    both = selection.freeze("retry", [retried, *beyond[:1]], "root", "console", f"because of {MARK}")
    world.queues.run(
        "update messages.message_archive set resolution = 'retried', operation = %(op)s where id = any (%(ids)s)",
        {"op": both.pk, "ids": [retried, beyond[0]]},
    )
    world.queues.run(
        "update messages.message_archive set died_at = died_at - interval '3 days' where id = %(id)s", {"id": beyond[1]}
    )
    now = timezone.now()
    FailureGroup.objects.filter(pk=digest).delete()
    FailureGroup.objects.create(
        fingerprint=digest, exception="Shop.Declined", message=f"declined by {MARK}", frame=f"at {MARK}",
        first_at=now - timedelta(days=30), owner=MARK, ticket=f"https://{MARK}.example", note=f"ask {MARK}",
        noted_by=MARK, noted_at=now, acknowledged_by=MARK, acknowledged_at=now, acknowledged_to=4_711_003,
        acknowledged_reason=MARK,
    )  # fmt: skip
    PostedMark.objects.create(
        at=now - timedelta(minutes=5), who=MARK, text=f"{MARK} 2.0", link=f"https://{MARK}.example"
    )
    alert = Alert.objects.create(
        kind="dead_message", subject=INSIDE, queue=INSIDE, cause="Shop.Declined", severity="critical",
        sentence="it died", opened_at=now, last_seen_at=now,
    )  # fmt: skip
    AlertMail.objects.create(
        alert=alert, message_id=f"{MARK}@y", to="ops@x", subject="it died", text=MARK, html=MARK, state="sent"
    )
    return digest


def _scheduled(world: World) -> tuple[int, int]:
    """One that sends to the hidden queue, and one of theirs: it did so before, and its last message died there."""
    secret = ScheduleDraft(f"{MARK} nightly", NAME, f"Shop.{MARK}", json.dumps({MARK: 1}), "30 2 * * *", "UTC", "skip")
    by = Act("root", "console", MARK)
    hidden, ours = schedules.add(secret, by), schedules.add(replace(secret, name=f"{MARK} first"), by)
    for each in (hidden, ours):
        schedules.run_now(each, by)
    mine = ScheduleDraft("Ours nightly", INSIDE, "Shop.Mine", "{}", "30 2 * * *", "UTC", "skip")
    schedules.save(ours, mine, by)
    schedules.pause(ours, Act("ana", "console", "month end"))
    schedules.resume(ours, Act("ana", "console"))
    died = {"id": schedules.run_now(ours, Act("ana", "console")), "queue": NAME, "text": f"Shop.{MARK}"}
    world.queues.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, message_id,
            exception_type)
        values (now(), '{}', 'failed', 'w', 'transport', %(queue)s, %(id)s, %(text)s)""",
        died,
    )
    return hidden, ours


def _console(world: World, dead: int) -> list[Any]:
    frozen = selection.freeze("retry", [dead], "root", "console", f"because of {MARK}")
    asked = "select fingerprint from messages.message_archive where id = %(id)s"
    digest = str(world.queues.value(asked, {"id": dead}))
    FailureGroup.objects.filter(pk=digest).delete()
    said = {"exception": f"Shop.{MARK}", "message": f"no {MARK}", "frame": "", "owner": "ana"}
    FailureGroup.objects.create(fingerprint=digest, first_at=timezone.now(), **said)
    now = timezone.now()
    alert = Alert.objects.create(
        kind="off_target", subject=NAME, queue=NAME, severity="critical", sentence=f"{MARK} is late", opened_at=now,
        last_seen_at=now,
    )  # fmt: skip
    mail = AlertMail.objects.create(
        alert=alert, message_id=f"{MARK}@x", to="ops@x", subject=MARK, text=MARK, html=MARK, state="sent"
    )
    endpoint = Endpoint.objects.create(name=f"{MARK}.Orders", table=SECRET.table, desired_processes=1)
    Queue.objects.filter(schema=SECRET.schema, table=SECRET.table).update(endpoint=endpoint.name)
    process = Process.objects.create(
        role="endpoint", endpoint=endpoint.name, host=socket.gethostname(), pid=4_712, start_ticks=1, state="running",
        started_at=now, heartbeat_at=now, busy=1, slots=1,
    )  # fmt: skip
    Endpoint.objects.create(
        name="Ours", table="Billing", desired_processes=1, error_queue=NAME, audit_queue=NAME,
        subscription_table=f'"public"."{MARK}Routing"', audit_ttbr_seconds=4_711_006,
    )  # fmt: skip
    Process.objects.create(
        role="endpoint", endpoint="Ours", host="ours", pid=4_711, start_ticks=1, state="running", started_at=now,
        heartbeat_at=now, slots=1,
    )  # fmt: skip
    for noun, subject in (("queue", NAME), ("endpoint", endpoint.name), ("message", NAME)):
        AuditEntry.objects.create(
            who="narrow", verb="set", noun=noun, subject=subject, origin="console", before={"target_depth": 1},
            after={"target_depth": 2}, reason=MARK,
        )  # fmt: skip
    AuditEntry.objects.create(
        who="narrow", verb="move", noun="message", subject=INSIDE, origin="console", after={"queue": NAME}
    )
    _of_ours()
    RetryRule.objects.create(queue=NAME, target=NAME, who="root")
    view = {"slug": MARK, "name": MARK, "page": "archive", "query": urlencode({"q": MARK})}
    SavedView.objects.create(owner="root", is_shared=True, **view)
    return [frozen.pk, digest, alert.pk, mail.pk, process.pk, endpoint.name, MARK]


def _of_ours() -> None:
    """What was done to an endpoint of this name while it was another queue's, and since."""
    by: dict[str, Any] = {"who": "ana", "noun": "endpoint", "subject": "Ours", "origin": "console"}
    for reason, verb, before, after in (
        (MARK, "declare", None, {"schema": "public", "table": SECRET.table, "peek_delay_ms": 4_711_007}),
        (MARK, "set", {"peek_delay_ms": 4_711_007}, {"peek_delay_ms": 4_711_008}),
        (MARK, "withdraw", None, None),
        ("", "create", None, {"schema": "public", "desired_processes": 1}),
        (MARK, "set", {"error_queue": ""}, {"error_queue": NAME}),
        (MARK, "set", {"error_queue": NAME, "concurrency": 1}, {"error_queue": "", "concurrency": 2}),
        ("ours alone", "set", {"immediate_retries": 4}, {"immediate_retries": 5}),
    ):
        AuditEntry.objects.create(verb=verb, before=before, after=after, reason=reason, **by)


@pytest.fixture(scope="module")
def scoped(world: World) -> Group:
    """With every right, and Django admin: what is refused is refused for the queue."""
    group = Group.objects.create(name="billing")
    group.permissions.set(Permission.objects.all())
    QueueScope.objects.create(group=group, pattern="public.Billing*", may_act=True)
    person = User.objects.create_user("narrow", is_staff=True)
    person.groups.add(group)
    return group


@pytest.fixture(scope="module")
def narrow(world: World, scoped: Group) -> Client:
    return world.client("narrow", raise_request_exception=False)


@pytest.fixture(scope="module")
def every(world: World, planted: SimpleNamespace) -> list[tuple[str, str]]:
    return crawl.paths(world)


@pytest.fixture(scope="module")
def telling(every: list[tuple[str, str]], planted: SimpleNamespace) -> list[tuple[str, str]]:
    """Where whoever sees all finds the queue: its own addresses, and lists."""
    own = [(name, path) for name, path in every if planted.places & set(path.split("/")) and name not in crawl.ACTS]
    lists = [(name, path) for name, path in crawl.few(every, 1) if name in crawl.PLAIN and name not in crawl.ACTS]
    more = [
        ("archive", f"/archive/?q={quote(q)}")
        for q in ("", f"queue:{SECRET.table}", MARK, "-type:x", f"body:{MARK}", "state:dead OR type:x")
    ]
    more += [
        ("archive", "/archive/?q=&facets=open&sort=-sent"),
        ("archive", "/archive/?q=&facets=open&sort=size"),
        ("queues", f"/queues/?q={MARK}"),
        ("queues", "/queues/?sort=-ready"),
        ("bin", f"/bin/?q={MARK}"),
        ("queue", f"/queues/public/{quote(SECRET.table)}/?ends=1&w=6h"),
        ("finder", f"/messages/?q={MARK}"),
        ("find_message", f"/messages/{planted.row_id}/"),
        ("find_message", f"/messages/{planted.dead}/"),
        ("find_message", f"/messages/{MARK}-1/"),
        ("find_message", f"/messages/{MARK}-c/"),
        ("alerts", "/alerts/?by=list"),
        ("overview", "/?w=24h"),
        ("archive", f"/archive/?q=owner:{MARK}"),
        ("audit", "/audit/?facets=open"),
        ("audit", f"/audit/?q={MARK}"),
        ("audit", f"/audit/?q=on:{MARK}"),
        ("trial_new", f"/trials/new/?id={planted.dead}&id={planted.inside}"),
        ("trial_new", f"/trials/new/?q={quote(f'state:dead fp:{planted.mixed}')}"),
        ("trial_new", f"/trials/new/?operation={planted.operation}"),
        *(
            ("archive_suggestions", f"/archive/suggestions/?{urlencode({'q': q})}")
            for q in ("queue:", f"queue:{MARK}", "type:", "error:", "owner:", "endpoint:", "host:")
        ),
        ("archive_suggestions", f"/archive/suggestions/?{urlencode({'of': 'everywhere', 'q': MARK[:4]})}"),
        ("failures", f"/failures/?owner={MARK}"),
        ("failures", "/failures/?by=type"),
        ("failures", "/failures/?by=queue&q=-type:x"),
        ("failures", "/failures/?by=endpoint"),
        ("failures", f"/failures/?q=queue:{SECRET.table}"),
        ("failures", "/failures/?q=error:Declined"),
        ("failures", "/failures/?state=new"),
        ("failures_chosen", f"/failures/chosen/?f={planted.group}&f={planted.mixed}"),
        *(("failure", f"/failures/{planted.mixed}/?w={window}") for window in ("1h", "24h", "7d")),
        ("conversation", f"/conversations/{MARK}-c/?history=1"),
        ("conversation", f"/conversations/{MARK}-m/"),
        *(
            ("conversation", f"/conversations/{SHARED}/?{urlencode({'m': any_id, 'history': 1})}")
            for any_id in ("", "Mine-before", f"{MARK}-before", planted.row_id, planted.dead)
        ),
        *(("schedule", f"/schedules/{each}/") for each in (planted.schedule, planted.ours)),
        ("schedules", f"/schedules/?q={MARK}"),
        ("schedules", "/schedules/?q=result:dead"),
        ("live", f"/live/?{urlencode({'t': f'message:{planted.dead}:UTC'})}"),
    ]
    return list(dict.fromkeys([*own, *lists, *more]))


def test_no_answer_has_anything_of_another_queue(
    narrow: Client, every: list[tuple[str, str]], telling: list[tuple[str, str]]
) -> None:
    addresses = dict.fromkeys([*crawl.few(every, 1), *telling])
    answers = [(name, path, answer.status_code, _said(answer)) for name, path, answer in crawl.get(narrow, addresses)]
    told = ((path, _without_asked(said, path)) for _, path, _, said in answers)
    leaks = [f"{path}: {_around(said)}" for path, said in told if MARK in said.casefold()]
    assert not leaks, "\n".join(leaks)
    assert [path for name, path, status, _ in answers if status >= 500 and name not in OF_MACHINES] == []
    refused = {name for name, _, status, _ in answers if status == 403}
    assert refused.isdisjoint(NARROWED - FILES)
    assert {name for name, _ in crawl.names()} - refused <= NARROWED | OF_MACHINES


def _around(said: str) -> str:
    """Where it stands."""
    at = said.casefold().find(MARK)
    return " ".join(said[max(0, at - 150) : at + 60].split())


def _without_asked(said: str, path: str) -> str:
    """A page may say again what its address says."""
    _, _, query = path.partition("?")
    typed = [
        path,
        *map(unquote, filter(None, path.partition("?")[0].split("/"))),
        *(each for values in parse_qs(query).values() for each in values),
    ]
    typed += [each.partition(":")[2] for each in typed if ":" in each]
    typed += [".".join(f'"{part}"' for part in each.split(".")) for each in typed]  # as an address is read
    forms = {form for text in typed for form in (text, escape(text), quote(text, safe=""))}
    for each in sorted(forms, key=len, reverse=True):
        said = said.replace(each, "") if MARK in each else said
    return said


def test_whoever_sees_all_finds_it(world: World, telling: list[tuple[str, str]]) -> None:
    """Else the test above would show nothing."""
    told = {name for name, _, answer in crawl.get(world.client("root"), telling) if MARK in _said(answer).casefold()}
    missing = {
        "overview", "queues", "queue", "queue_settings", "messages", "waiting_message", "delayed", "archive", "bin",
        "archived_message", "edit_message", "failures", "failure", "failures_chosen", "alerts", "alert", "alert_mails",
        "alert_mail",
        "operation", "audit", "endpoints", "endpoint", "workers", "settings", "retry_rules", "views", "conversation",
        "schedules", "schedule", "finished_message", "archived_body", "waiting_body", "subscriptions",
    } - told  # fmt: skip
    assert missing == set()


def test_nothing_is_done_to_another_queue(
    world: World, narrow: Client, every: list[tuple[str, str]], planted: SimpleNamespace
) -> None:
    # a number of the console's is of a schedule of theirs, too
    ours, hidden = f"/schedules/{planted.ours}/", f"/schedules/{planted.schedule}/"
    places = [path for _, path in every if planted.places & set(path.split("/")) and not path.startswith(ours)]
    own = [*places, *(f"{hidden}{act}" for act in ("", "run/", "pause/", "resume/", "remove/"))]
    before = world.state()
    answers = {path: narrow.post(path, {"reason": "x", "act": "discard"}).status_code for path in dict.fromkeys(own)}
    assert {path: status for path, status in answers.items() if status not in {403, 404, 405}} == {}
    for chosen in ({"id": str(planted.dead)}, {"id": str(planted.dead), "at_once": "yes"}):
        narrow.post("/operations/", {"act": "discard", **chosen})
    narrow.post("/operations/", {"act": "restore and retry", "id": str(planted.binned)})
    narrow.post("/operations/", {"act": "purge", "schema": SECRET.schema, "table": SECRET.table})
    narrow.post("/operations/", {"act": "call back", "operation": str(planted.operation)})
    narrow.post("/queues/public/Billing/messages/acts/", {"row": planted.row_id, "act": "move", "to": NAME})
    assert world.state() == before


def test_all_matching_is_what_they_may_act_on(narrow: Client, planted: SimpleNamespace) -> None:
    answer = narrow.post("/operations/", {"act": "discard", "all": "matching", "q": "state:dead"})
    assert answer.status_code == 303
    frozen = Operation._base_manager.order_by("-pk")[0]
    assert list(frozen.queues) == [INSIDE]
    assert INSIDE in frozen.selection
    assert narrow.get(answer["Location"]).status_code == 200
    assert f"/operations/{frozen.pk}/" in narrow.get("/operations/").content.decode()


def test_endpoints_and_subscriptions_are_of_their_queues(narrow: Client, planted: SimpleNamespace) -> None:
    endpoints, subscriptions = (narrow.get(f"/{page}/").content.decode() for page in ("endpoints", "subscriptions"))
    assert "needs somebody who sees all queues" in endpoints
    assert "whose copies go to queues that you may see" in " ".join(subscriptions.split())
    assert "Ledger" in subscriptions
    assert "Published without a subscriber" not in subscriptions
    before = Endpoint._base_manager.count()
    narrow.post("/endpoints/", {"name": "Mine", "queue": INSIDE, "peek_delay_ms": "1000 ms"})
    assert Endpoint._base_manager.count() == before


def test_workers_are_those_of_their_endpoints(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    """Nothing of supervisors, the console's own programs and others: not even in what the pages' streams send."""
    mine = Process._base_manager.get(endpoint="Ours")
    others = Process._base_manager.exclude(pk=mine.pk).values_list("pk", flat=True)
    page = narrow.get("/workers/").content.decode()
    assert f'id="process-{mine.pk}"' in page
    assert 'action="/endpoints/Ours/stop/"' in page
    assert "/log/" not in page
    assert "upervisor" not in page.partition("<main")[2]
    with visible_queues.within(queue_access.of(User.objects.get(username="narrow"))):
        streams = [topics._topics[name].render("") for name in ("workers", "endpoints")]
    for told in streams:
        assert told["@processes"] == str(mine.pk)
        assert f"process.{mine.pk}.state" in told
        assert not [key for key in told if key.startswith(tuple(f"process.{pk}." for pk in others))]


def test_an_endpoint_of_theirs_is_shown_without_what_it_names(
    world: World, narrow: Client, planted: SimpleNamespace
) -> None:
    """Other queues stand in its settings, in what was changed of them, and in what it did for another queue before."""
    path = "/endpoints/Ours/"
    secret = [MARK, "4,711,006", "4711006", "4711007", "4711008", "1 h 18 min"]
    pages = [path, f"{path}?edit=1", "/queues/public/Billing/?edit=1", "/audit/?q=on:Ours&facets=open"]
    for each in pages:
        page = narrow.get(each).content.decode()
        assert [word for word in secret if word in page] == [], each
        assert 'name="error_queue"' not in page
        assert "ours alone" in page or "edit=1" in each, each
    assert MARK in world.client("root").get(path).content.decode()
    page = narrow.get(path).content.decode()
    assert f'id="process-{Process._base_manager.get(endpoint="Ours").pk}"' in page
    assert "are for people who see every queue" in page
    assert narrow.get(f"/endpoints/{MARK}.Orders/").status_code == 404


def test_an_endpoint_of_theirs_is_changed_but_for_what_it_names(
    world: World, narrow: Client, planted: SimpleNamespace
) -> None:
    entries = {each.pk for each in AuditEntry._base_manager.filter(noun="endpoint", subject="Ours")}
    form = narrow.get("/endpoints/Ours/?edit=1").content.decode()
    fields = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', form))
    typed = {
        **fields, "concurrency": "3", "transaction_mode": "sends_atomic_with_receive", "repeek_after": "receives",
        "outbox": "off", "outbox_isolation": "default", "on_exhausted": "error_queue", "error_queue": INSIDE,
        "audit_queue": INSIDE, "subscription_table": INSIDE,
    }  # fmt: skip
    for verb in ("settings/effect", "settings"):
        answer = narrow.post(f"/endpoints/Ours/{verb}/", typed)
        assert answer.status_code in (200, 303)
        assert MARK not in answer.content.decode()
    row = Endpoint._base_manager.get(name="Ours")
    assert (row.concurrency, row.error_queue, row.audit_queue, row.on_exhausted) == (3, NAME, NAME, "archive")
    for entry in entries:
        narrow.post(f"/endpoints/Ours/undo/{entry}/")
    again = Endpoint._base_manager.get(name="Ours")
    assert (again.error_queue, again.peek_delay_ms, again.immediate_retries) == (NAME, row.peek_delay_ms, 4)
    assert narrow.post("/endpoints/Ours/withdraw/").status_code == 403
    Endpoint._base_manager.filter(name="Ours").update(concurrency=2, immediate_retries=5)


def test_schedules_are_those_that_send_to_their_queues(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    """Nothing of what one of theirs sent elsewhere before, nor of where its message died."""
    listed, page = (
        narrow.get("/schedules/").content.decode(),
        narrow.get(f"/schedules/{planted.ours}/").content.decode(),
    )
    assert "1 schedule:" in listed
    assert "Ours nightly" in listed
    assert "what became of it cannot be seen" in listed
    assert "looked" not in listed.partition("<main")[2].partition("A due time")[0]
    assert MARK not in listed + page
    assert page.count("by ana") == 1  # of two runs by hand the one into their queue
    assert "month end" in page
    assert narrow.get(f"/schedules/{planted.schedule}/").status_code == 404
    choices = narrow.get("/schedules/new/").content.decode()
    assert "Billing in public" in choices
    assert "lease queue messages.message" not in choices
    assert MARK in world.client("root").get("/schedules/").content.decode()


def test_schedules_are_changed_and_made_for_queues_they_act_on(
    world: World, narrow: Client, planted: SimpleNamespace
) -> None:
    """A name that another's schedule has is told from none by nobody."""
    typed = {
        "to": INSIDE, "message_type": "Shop.Mine", "zone": "UTC", "minute": "0", "hour": "6", "day": "*", "month": "*",
        "weekday": "*", "message": "{}", "missed": "skip",
    }  # fmt: skip
    taken, free = (
        narrow.post("/schedules/new/", {**typed, "name": f"{MARK} {name}"}) for name in ("nightly", "not there")
    )
    assert (taken.status_code, free.status_code) == (422, 422)
    assert "Begin its name with “public.Billing: ”" in taken.content.decode()
    assert _differing(*(_settled(each).replace("not there", "nightly") for each in (taken, free))) == []
    for to in (NAME, schedules.LEASE, '"public"."none"'):
        assert narrow.post("/schedules/new/", {**typed, "to": to, "name": "public.Billing: x"}).status_code == 422
        with visible_queues.within(queue_access.of(User.objects.get(username="narrow"))):
            draft = ScheduleDraft("lease queue: x", to, "", "{}", "30 2 * * *", "UTC", "skip")
            with pytest.raises(ScheduleRefused):
                schedules.add(draft, Act("narrow", "console"))
    assert narrow.post("/schedules/new/", {**typed, "name": "public.Billing: x"}).status_code == 303
    made = Schedule.objects.get(name="public.Billing: x").pk
    before = world.state()
    for verb in ("pause", "resume", "run", "remove"):
        assert narrow.post(f"/schedules/{planted.schedule}/{verb}/").status_code == 404
    assert narrow.post(f"/schedules/{planted.schedule}/", {**typed, "name": "public.Billing: y"}).status_code == 404
    assert world.state() == before
    for verb in ("pause", "resume", "run"):
        narrow.post(f"/schedules/{made}/{verb}/")
    assert narrow.post(f"/schedules/{made}/", {**typed, "name": "public.Billing: z"}).status_code == 303
    history = narrow.get(f"/schedules/{made}/").content.decode()
    assert "narrow</b>" in history
    assert narrow.post(f"/schedules/{made}/remove/").status_code == 303
    assert not Schedule.objects.filter(pk=made).exists()
    assert "It is removed" in narrow.get("/schedules/").content.decode()  # which says what was done once


def test_trends_are_of_one_of_their_queues(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    """Charts, tables, files and what is new: the same, whatever the figures of other queues are."""
    at, cause = TEN + timedelta(minutes=5), "0" * 15 + "9"
    timed: dict[str, Any] = {"critical_buckets": [300], "critical_counts": [41], "result": "failed"}
    rolled_up(at, 41, queue=INSIDE, type="Shop.Mine", **timed)
    rolled_up(at - timedelta(days=3), grain="day", queue=INSIDE, type="Shop.Mine", **timed)
    failed(at, cause, 41, queue=INSIDE, type="Shop.Mine")
    window = "/trends/?w=1h&at=2026-11-14T10:40:00Z"
    more = ["", "&table=steps", "&table=share", "&table=heat", f"&queue={quote(NAME)}", f"&endpoint={MARK}.Orders"]
    more += [f"&type={MARK}", *(f"&format={each}" for each in ("steps", "share", "heat", "types", "depth"))]
    paths = [f"{window}{each}" for each in more] + [window.replace("/?", "/types/?")]
    told = {path: _settled(narrow.get(path)) for path in paths}
    whole = {path: _settled(world.client("root").get(path)) for path in paths}
    rolled_up(at - timedelta(days=3), 5, grain="day", queue=NAME, type=MARK, **timed)
    failed(at - timedelta(days=3), cause, 5, queue=NAME, type=MARK)
    rolled_up(at, 4_711_005, queue=NAME, type=MARK, endpoint=f"{MARK}.Orders", **timed | {"critical_buckets": [700]})
    failed(at, cause, 4_711_005, queue=NAME, type=MARK)
    became(MARK, at, failed=3, last_failed_at=at, queue=NAME, endpoint=f"{MARK}.Orders", type=MARK)
    leaks = [each for path in paths for each in _differing(told[path], _settled(narrow.get(path)))]
    assert not leaks, "\n".join(leaks)
    page = told[window]
    assert re.search(r"<dt>Failed</dt><dd class=\"v\">(<[^>]+>)*41<", page)
    assert "Shop.Mine" in page
    assert "new</span>" in page
    assert "/history/" not in page
    assert {path for path in paths if _settled(world.client("root").get(path)) == whole[path]} <= {
        f"{window}&format=depth"
    }


def test_trends_ask_once_for_their_queues(narrow: Client, planted: SimpleNamespace) -> None:
    with CaptureQueriesContext(connections["default"]) as asked:
        assert narrow.get("/trends/?w=1h").status_code == 200
    all_of_them = (
        r'FROM "pgqueue_queue" WHERE \("pgqueue_queue"."id" IN \([^)]*\) AND "pgqueue_queue"."gone_since" IS NULL\)'
    )
    assert len([each for each in asked.captured_queries if re.search(all_of_them, each["sql"])]) == 1


def test_pages_of_their_own_things_name_no_queue_of_others(
    world: World, narrow: Client, planted: SimpleNamespace
) -> None:
    """A message of theirs was found in an error queue, and retried by somebody into another's queue."""
    inside, own = _die(world, INSIDE, "Mine", "Moved"), {"schema": "public", "table": "Billing"}
    frozen = selection.freeze("retry", [inside], "root", "console", "ours")
    world.queues.run(
        """insert into messages.archive_event (archive_id, who, verb, target)
        values (%(id)s, 'root', 'edited and retried', %(queue)s)""",
        {"id": inside, "queue": NAME},
    )
    AuditEntry.objects.create(
        who="root", verb="edit", noun="message", subject=INSIDE, origin="console", reason=MARK,
        after={"archive_id": inside, "message_id": f"{MARK}-edited", "queue": NAME},
    )  # fmt: skip
    row_id = _send(world, Address("public", "Billing"), "{}", b"{}")
    paths = [
        *(reverse(name, args=[inside]) for name in ("archived_message", "edit_message", "copy_archived")),
        *(reverse(name, kwargs={**own, "row_id": row_id}) for name in ("waiting_message", "copy_waiting")),
        *(reverse(name, kwargs=own) for name in ("queue", "messages", "queue_settings", "queue_send")),
        reverse("operation", args=[frozen.pk]), "/queues/public/Billing/?edit=1&ends=1", f"/trials/new/?id={inside}",
        f"/archive/?q=op:{frozen.pk}", f"/archive/{inside}/?trace=full&q=state:dead", "/me/", "/bin/", "/views/",
    ]  # fmt: skip
    for path in paths:
        answer = narrow.get(path)
        assert answer.status_code == 200, path
        page = answer.content.decode()
        assert MARK not in page, f"{path}: {_around(page)}"
        assert "&quot;error&quot;" not in page, path
    assert "into a queue that you may not see" in narrow.get(paths[0]).content.decode()
    whole = world.client("root").get(paths[0]).content.decode()
    for each in ("&quot;error&quot;", f"{MARK}.Orders", f"{MARK}-edited"):
        assert each in whole, each


def test_what_is_guessed_is_told_from_nothing_by_no_answer(
    world: World, narrow: Client, planted: SimpleNamespace
) -> None:
    """Of each pair the first is there, and hidden: the answers are the same but for what was asked."""
    none, row_id = "zq7nothing", str(uuid.uuid4())
    words = [(SECRET.table, f"{none}.Orders"), (MARK, none), (planted.row_id, row_id)]
    ids = [(str(each), str(1_900_000_000 + number)) for number, each in enumerate(
        (planted.dead, planted.binned, planted.operation, planted.alert, planted.schedule), 1
    )]  # fmt: skip
    words += [*ids, *((f"{int(known):,}", f"{int(guess):,}") for known, guess in ids), (planted.group, "0" * 16)]
    asked = [
        f"/queues/public/{SECRET.table}/", f"/queues/public/{SECRET.table}/messages/{planted.row_id}/",
        f"/archive/{planted.dead}/", f"/archive/{planted.dead}/body/", f"/operations/{planted.operation}/",
        f"/alerts/{planted.alert}/", f"/schedules/{planted.schedule}/", f"/endpoints/{MARK}.Orders/",
        f"/failures/{planted.group}/", f"/messages/{planted.row_id}/", f"/messages/{MARK}-1/",
        f"/conversations/{MARK}-c/", f"/views/{MARK}/", f"/trials/new/?id={planted.dead}",
        *(f"/archive/?q={q}" for q in (
            f"queue:{SECRET.table}", f"op:{planted.operation}", f"fp:{planted.group}", f"conversation:{MARK}-c",
            f"type:Shop.{MARK}", f"endpoint:{MARK}.Orders", f"owner:{MARK}",
        )),
        f"/bin/?q={MARK}", f"/failures/?q=queue:{SECRET.table}", f"/queues/?q={MARK}", f"/operations/?q={MARK}",
        f"/audit/?q=on:{SECRET.table}", f"/audit/?q=op:{planted.operation}", f"/schedules/?q={MARK}",
        *(f"/archive/suggestions/?q={field}:{MARK}" for field in ("queue", "endpoint")), f"/delayed/?q={MARK}",
    ]  # fmt: skip
    posts: list[tuple[str, dict[str, str]]] = [
        (f"/archive/{planted.inside}/edit/", {"to": NAME, "body": "{}", "reason": "x"}),
        ("/operations/", {"act": "discard", "id": str(planted.dead)}),
        ("/operations/", {"act": "discard", "id": str(planted.dead), "at_once": "yes"}),
        ("/operations/", {"act": "restore and retry", "id": str(planted.binned)}),
        ("/operations/", {"act": "purge", "schema": SECRET.schema, "table": SECRET.table}),
        ("/operations/", {"act": "call back", "operation": str(planted.operation)}),
        (f"/alerts/{planted.alert}/acknowledgement/", {"until": "back"}),
        ("/queues/public/Billing/messages/acts/", {"row": planted.row_id, "act": "discard", "reason": "x"}),
    ]

    def guessed(text: str) -> str:
        for known, guess in words:
            text = re.sub(rf"(?<![\w,]){re.escape(known)}(?![\w,])", guess, text)
        return text

    apart = {each: rf"(?<!\d){each}(?!\d)" if each[0].isdigit() and "-" not in each else re.escape(each)
             for pair in words for each in pair}  # fmt: skip
    either = re.compile("|".join(apart.values()))

    def told(answer: Any) -> str:
        return either.sub("#", f"{answer.status_code} {answer.get('Location', '')}\n{_settled(answer)}")

    wrong = []
    for path in asked:
        there, nothing = told(narrow.get(path)), told(narrow.get(guessed(path)))
        wrong += [f"{path}: {each}" for each in _differing(there, nothing)]
    for path, said in posts:
        answers = []
        for form, to in ((said, path), ({name: guessed(value) for name, value in said.items()}, guessed(path))):
            answers.append(told(narrow.post(to, form)) + told(narrow.get("/bin/")))
        wrong += [f"{path} {said}: {each}" for each in _differing(*answers)]
    assert not wrong, "\n".join(wrong)


def test_a_file_has_their_messages_alone(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    for kind in ("csv", "jsonl"):
        for q in ("", "state:dead", "zq7 OR type:PlaceOrder"):
            file: Any = narrow.post("/archive/export/", {"q": q, "format": kind})
            written = str(async_to_sync(_read)(file.streaming_content))
            assert str(planted.inside) in written
            assert MARK not in written
    whole: Any = world.client("root").post("/archive/export/", {"q": "", "format": "csv"})
    assert MARK in str(async_to_sync(_read)(whole.streaming_content))


def test_what_is_only_looked_at_is_not_acted_on(world: World, planted: SimpleNamespace) -> None:
    group = Group.objects.create(name="lookers")
    group.permissions.set(Permission.objects.all())
    QueueScope.objects.create(group=group, pattern="public.Bill*")
    User.objects.create_user("looker").groups.add(group)
    looker, missing = world.client("looker"), "needs a group that may act on"
    assert missing in looker.get(f"/archive/{planted.inside}/").content.decode()
    before = world.state()
    answer = looker.post("/queues/public/Billing/messages/acts/", {"act": "discard"})
    assert answer.status_code == 403
    assert missing in answer.content.decode()
    looker.post("/operations/", {"act": "discard", "id": str(planted.inside), "at_once": "yes"})
    assert missing in looker.get("/bin/").content.decode()
    looker.post("/operations/", {"act": "discard", "id": str(planted.inside)})
    assert "you may only look at" in looker.get("/bin/").content.decode()
    looker.post("/operations/", {"act": "discard", "all": "matching", "q": "state:dead"})
    assert world.state() == before


def test_the_rail_shows_exactly_what_is_open(narrow: Client) -> None:
    page = narrow.get("/queues/").content.decode()
    rail = page[page.index('class="rail"') :].partition("</nav>")[0]
    every = {name: navigation.path_of(name) for _, entries in navigation.GROUPS for name, _, _ in entries}
    shown = {name for name, path in every.items() if f'href="{path}"' in rail}
    assert shown == {name for name, path in every.items() if narrow.get(path).status_code == 200}
    assert shown >= {"overview", "queues", "failures", "archive", "alerts"}
    assert {name: narrow.get(path).status_code for name, path in every.items() if name not in shown} == (
        dict.fromkeys(every.keys() - shown, 403)
    )


def test_overview_judges_by_theirs(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    there = LatestSample.objects.filter(queue__gone_since=None, queue__kind__in=("input", "lease"))
    mine = there.filter(queue__schema="public", queue__table__startswith="Billing")

    def ready(client: Client) -> int:
        page = client.get("/").content.decode()
        assert "The console cannot see" not in page
        told = matched(r'data-live="total.ready"[^>]*>.*?([\d,]+)<', page, re.DOTALL)
        return int(told.replace(",", ""))

    with _fresh():
        whole, theirs = ready(world.client("root")), ready(narrow)
        page = narrow.get("/").content.decode()
    assert theirs == sum(each.ready or 0 for each in mine)
    assert whole == sum(each.ready or 0 for each in there) > theirs
    assert 'data-live="total.dead"' not in page
    assert "known of all queues together" in page


@pytest.mark.parametrize("table", ["Billing", "Billing.Delayed"])
def test_what_waits_in_theirs_is_searched(narrow: Client, planted: SimpleNamespace, table: str) -> None:
    page = narrow.get(f"/queues/public/{table}/messages/?q={quote('-body:x OR size:>=0')}").content.decode()
    assert "Looked through" in page


def test_a_failure_of_both_queues_is_told_as_of_theirs(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    def figures(client: Client) -> tuple[str, str]:
        page = client.get("/failures/?q=error:Declined").content.decode()
        row = page[page.index(f'id="f{planted.mixed}"') :]
        return matched(r'data-l="Dead"><b>.*?>([\d,]+)<', row, re.DOTALL), matched(
            r"(\d+ groups?, \d+ messages?),", page
        )

    assert figures(narrow) == ("1", "1 group, 1 message")
    assert figures(world.client("root")) == ("3", "1 group, 3 messages")
    page = narrow.get(f"/failures/{planted.mixed}/").content.decode()
    assert "2 deaths in 24 h" in page
    assert "Retry 1…" in page
    assert "4 deaths" in world.client("root").get(f"/failures/{planted.mixed}/").content.decode()
    for there in ("Try 1 without effect", "Edit and retry"):
        assert there in page, there
    assert "What is said of all queues together is not shown" in page
    assert narrow.get(f"/failures/{planted.group}/").status_code == 404
    assert narrow.get(f"/failures/{'0' * 16}/").status_code == 404
    for verb, said in (("assignment", {"owner": "me"}), ("acknowledgement", {"until": "4 h"})):
        hidden, none = (narrow.post(f"/failures/{each}/{verb}/", said) for each in (planted.group, "0" * 16))
        assert (hidden.status_code, none.status_code) == (404, 404)
        assert _differing(*(_settled(each).replace(planted.group, "0" * 16) for each in (hidden, none))) == []


def test_a_team_says_whose_a_failure_is_in_its_queues(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    """People of the same groups read it, people who see every queue read whose word it is, and nobody else does."""
    path = f"/failures/{planted.mixed}/"
    said = {"owner": "Billing crew", "ticket": "B-7", "note": "ours waits"}
    assert narrow.post(f"{path}assignment/", said).status_code == 303
    assert narrow.post(f"{path}acknowledgement/", {"until": "4 h", "reason": "seen"}).status_code == 303
    mate = User.objects.create_user("mate")
    mate.groups.add(Group.objects.get(name="billing"))
    for client in (narrow, world.client("mate")):
        page = client.get(path).content.decode()
        assert "Billing crew" in page
        assert "ours waits" in page
        assert f'class="grey" id="f{planted.mixed}"' in client.get("/failures/?q=error:Declined").content.decode()
        found = client.get("/failures/", {"q": 'owner:"Billing crew"'}).content.decode()
        assert f'id="f{planted.mixed}"' in found
        assert MARK not in page
    for name, pattern in (("crossers", "public.Billing*"), ("others", "public.Billing*")):
        group = Group.objects.create(name=name)
        group.permissions.set(Permission.objects.all())
        QueueScope.objects.create(group=group, pattern=pattern, may_act=True)
        person = User.objects.create_user(name)
        person.groups.add(group, *([Group.objects.get(name="billing")] if name == "crossers" else []))
        assert "Billing crew" not in world.client(name).get(path).content.decode()
    whole = " ".join(re.sub(r"<[^>]+>", " ", world.client("root").get(path).content.decode()).split())
    assert "billing: owner Billing crew" in whole
    assert "ours waits" in whole
    assert FailureGroup.objects.get(pk=planted.mixed).owner == MARK
    entries = AuditEntry._base_manager.filter(noun="failure", who="narrow")
    assert {(each.after or {}).get("team") for each in entries} == {"billing"}
    narrow.post(f"{path}acknowledgement/", {"withdraw": "yes"})
    assert f'class="grey" id="f{planted.mixed}"' not in narrow.get("/failures/?q=error:Declined").content.decode()


def test_who_only_looks_says_nothing_of_a_failure(world: World, planted: SimpleNamespace) -> None:
    group = Group.objects.create(name="quiet")
    group.permissions.set(Permission.objects.all())
    QueueScope.objects.create(group=group, pattern="public.Billing*")
    User.objects.create_user("quiet").groups.add(group)
    before, client = world.state(), world.client("quiet")
    client.post(f"/failures/{planted.mixed}/assignment/", {"owner": "me"})
    assert "yours may only look" in client.get("/bin/").content.decode()
    assert not TeamFailure._base_manager.filter(owner="me").exists()
    assert world.state() == before


def test_who_only_looks_takes_no_acknowledgement_back(world: World, planted: SimpleNamespace) -> None:
    """Also one of their own team, which was given while the team might act."""
    group = Group.objects.create(name="looking")
    group.permissions.set(Permission.objects.all())
    scope = QueueScope.objects.create(group=group, pattern="public.Billing*", may_act=True)
    User.objects.create_user("looking").groups.add(group)
    client, path = world.client("looking"), f"/failures/{planted.mixed}/acknowledgement/"
    assert client.post(path, {"until": "4 h"}).status_code == 303
    QueueScope.objects.filter(pk=scope.pk).update(may_act=False)
    client.post(path, {"withdraw": "yes"})
    assert "yours may only look" in client.get("/bin/").content.decode()
    theirs = TeamFailure._base_manager.get(fingerprint=planted.mixed, team=[group.pk])
    assert theirs.acknowledged_by == "looking"


def test_a_conversation_is_told_as_far_as_they_see(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    page = narrow.get(f"/conversations/{SHARED}/").content.decode()
    assert "2 messages" in page
    assert "MineFault" in page
    assert "files are of all queues together" in page
    assert MARK not in page
    whole = world.client("root").get(f"/conversations/{SHARED}/").content.decode()
    assert "5 messages" in whole
    hidden, none = (narrow.get(f"/conversations/{each}/") for each in (f"{MARK}-c", f"{MARK}-none"))
    assert (hidden.status_code, none.status_code) == (200, 200)
    bare = [_settled(each).replace(f"{MARK}-c", "x").replace(f"{MARK}-none", "x") for each in (hidden, none)]
    assert _differing(*bare) == []


def test_a_failure_is_retried_where_they_may_act(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    asked = {"act": "retry", "all": "matching", "q": f"state:dead fp:{planted.mixed}"}
    answer = narrow.post("/operations/", asked)
    frozen = Operation._base_manager.order_by("-pk")[0]
    assert answer["Location"] == f"/operations/{frozen.pk}/"
    assert frozen.queues == {INSIDE: 1}
    narrow.post("/operations/", {**asked, "q": f"state:dead fp:{planted.group}"})
    assert Operation._base_manager.order_by("-pk")[0] == frozen
    said = {"act": "assign", "owner": "me"}
    narrow.post(f"/failures/chosen/?f={planted.mixed}&f={planted.group}", said)
    narrow.post(f"/failures/chosen/?f={planted.mixed}", {"act": "acknowledge", "until": "4 h"})
    known = FailureGroup.objects.get(pk=planted.mixed)
    assert (known.owner, known.acknowledged_by) == (MARK, MARK)


def test_an_act_on_a_failure_says_what_it_leaves(world: World, planted: SimpleNamespace) -> None:
    group = Group.objects.create(name="leads")
    group.permissions.set(Permission.objects.all())
    QueueScope.objects.create(group=group, pattern="public.Billing*")
    User.objects.create_user("lead").groups.add(group)
    lead, path = world.client("lead"), f"/failures/{planted.mixed}/"
    page = lead.get(path).content.decode()
    assert "yours may only look" in page
    sales = QueueScope.objects.create(group=group, pattern="public.Sales", may_act=True)
    _die(world, '"public"."Sales"', "Theirs")
    page = " ".join(re.sub(r"<[^>]+>", "", lead.get(path).content.decode()).split())
    assert "An act reaches 1 message. 1 other is in queues that you may only look at" in page
    assert "Retry 1…" in page
    lead.post("/operations/", {"act": "discard", "all": "matching", "q": f"state:dead fp:{planted.mixed}"})
    assert Operation._base_manager.order_by("-pk")[0].queues == {'"public"."Sales"': 1}
    sales.delete()


def test_pages_are_the_same_whatever_is_hidden(world: World, narrow: Client, planted: SimpleNamespace) -> None:
    """Figures, order, links and words: nothing of an answer depends on what lies where they do not see."""
    paths = [
        "/", "/?w=24h", "/failures/", "/failures/?by=queue", "/failures/?by=type", "/failures/?q=error:Declined",
        "/archive/?q=&facets=open", "/audit/", "/audit/?facets=open", "/endpoints/", "/workers/",
        "/subscriptions/", "/subscriptions/?as=matrix",
        *(f"/failures/{planted.mixed}/?w={window}" for window in ("1h", "24h", "7d")),
        f"/failures/chosen/?f={planted.mixed}&f={planted.group}",
        f"/conversations/{SHARED}/?m=Mine-before", f"/conversations/{SHARED}/?m={MARK}-later&history=1",
        "/queues/", "/delayed/", "/alerts/", "/operations/", "/bin/", "/schedules/",
    ]  # fmt: skip
    own = [
        "/queues/public/Billing/messages/", "/endpoints/Ours/", f"/schedules/{planted.ours}/", "/schedules/new/",
    ]  # fmt: skip
    with _fresh():
        _compared(world, narrow, planted, paths, own)


def _compared(world: World, narrow: Client, planted: SimpleNamespace, paths: list[str], own: list[str]) -> None:
    """``paths``: which tell of it to whoever sees all; ``own``: of things of theirs."""
    narrow.get("/")  # what was done before is said once, and when they looked before
    before = {path: _settled(narrow.get(path)) for path in [*paths, *own]}
    whole = {path: _settled(world.client("root").get(path)) for path in paths}
    later = [_die(world, NAME, MARK) for _ in range(5)]
    world.queues.run("update messages.message_archive set fingerprint = null where id = %(id)s", {"id": later[0]})
    _kill(world, NAME)
    for number in range(3):
        headers = {"NServiceBus.ConversationId": SHARED, "NServiceBus.RelatedTo": "Mine-before"}
        _send(world, SECRET, json.dumps({**headers, "NServiceBus.MessageId": f"{MARK}-later-{number}"}))
    FailureGroup.objects.filter(pk=planted.mixed).update(note="another", owner="", acknowledged_at=None, first_at=None)
    now = timezone.now()
    Alert.objects.create(
        kind="dead_message", subject=NAME, queue=NAME, cause="Shop.Declined", severity="critical", sentence="it died",
        opened_at=now, last_seen_at=now,
    )  # fmt: skip
    PostedMark.objects.create(at=now - timedelta(minutes=1), who="ci", text="3.0")
    _subscribe(world, f"{MARK}-later", SECRET)
    Endpoint._base_manager.filter(name=f"{MARK}.Orders").update(desired_processes=3)
    AuditEntry.objects.create(
        who="ana", verb="set", noun="queue", subject=NAME, origin="console", after={"target_age": 1}
    )
    both = selection.freeze("retry", [planted.inside, planted.dead], "root", "console", "both")
    Operation._base_manager.filter(pk=both.pk).update(state="running", started_by="root", started_at=now)
    Process.objects.create(
        role="endpoint", endpoint=f"{MARK}.Orders", host="h", pid=4_713, start_ticks=1, state="crashed", started_at=now,
        heartbeat_at=now, ended_at=now, exit_code=1,
    )  # fmt: skip
    LatestSample.objects.filter(queue__table=SECRET.table).update(ready=4_711_004, depth=4_711_004, error="locked")
    LatestSample.objects.filter(queue__table=DELAYED.table).update(depth=4_711_005, error="locked")
    world.queues.run(
        "update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', resolved_at = now()"
        " where id = %(id)s",
        {"id": later[1]},
    )
    hidden = ScheduleDraft(f"{MARK} later", NAME, "Shop.X", "{}", "30 2 * * *", "UTC", "skip")
    schedules.add(hidden, Act("root", "console"))
    told = [f"{path}: {each}" for path in before for each in _differing(before[path], _settled(narrow.get(path)))]
    assert not told, "\n".join(told)
    assert {path for path in paths if _settled(world.client("root").get(path)) == whole[path]} == set()


def _fresh() -> override_settings:
    """Figures as new as if the sampler ran: the verdict judges by them."""
    return override_settings(PGQUEUE={**settings.PGQUEUE, "SAMPLE_SECONDS": 3_600})


_VARIES = (
    r'name="csrfmiddlewaretoken" value="[^"]+"', r"<time.*?</time>", r"[\d,]+ ms", r'nonce="[^"]+"',
    r"X-CSRFToken[^>]*", r'data-now="[^"]+"', r"<span data-fresh-age>.*?</span>", r"<(b|span) [^>]*data-since.*?</\1>",
    r'<svg class="(?:lane-s|ev-s|axis-s)".*?</svg>', r'aria-label="[\d:]+ to [\d:]+"',
    r'<(?:rect class="breach|line class="since)"[^>]*>', r'<rect class="k-dead" x="[\d.]+"',
    r'class="[^"]*" data-l="Consumers"', r'data-live="q\d+\.(?:consumers|out)".*?</td>',
    r"<p>died once; [^<]* of it dead",
)  # fmt: skip


def _settled(answer: Any) -> str:
    """Without what differs from one answer to the next."""
    return re.sub("|".join(_VARIES), "", answer.content.decode(), flags=re.DOTALL)


def _differing(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [each for each in lines if each[:1] in "+-" and each[1:].strip(" +-")]


def test_totals_are_of_what_is_seen_and_say_so(narrow: Client) -> None:
    """Not how many others there are: it would tell of each that is made."""
    mine = Queue.objects.filter(gone_since=None, schema="public", table__startswith="Billing").count()
    for path, said in (("/queues/", f"{mine} queues: what you may see"), ("/me/", f"<p>{mine} there now")):
        assert said in " ".join(narrow.get(path).content.decode().split()), path
    assert "public.Billing*" in narrow.get("/me/").content.decode()


def test_topics_are_rendered_of_what_is_seen(world: World, scoped: Group, planted: SimpleNamespace) -> None:
    seen = queue_access.of(User.objects.get(username="narrow"))
    secret = Queue.objects.get(schema=SECRET.schema, table=SECRET.table).pk
    arguments = {
        "queue": str(secret), "messages": str(secret), "op": str(planted.operation), "queues": "",
        "message": f"{planted.dead}:UTC", "waiting": f"{secret}:{planted.row_id}", "frame": "", "delayed": "",
        "alerts": "UTC", "alert": "UTC", "warnings": str(planted.alert), "overview": "", "rows": str(secret),
        "failures": planted.group, "endpoints": "", "workers": "",
        "schedules": "",
        "endpoint": str(Endpoint._base_manager.get(name=f"{MARK}.Orders").pk),
    }  # fmt: skip
    assert arguments.keys() == {name for name, topic in topics._topics.items() if topic.narrowed}
    everywhere = {name: topics._topics[name].render(said) for name, said in arguments.items()}
    with visible_queues.within(seen):
        narrowed = {name: topics._topics[name].render(said) for name, said in arguments.items()}
    assert {name for name, said in narrowed.items() if not said} == EMPTY
    assert all(everywhere.values())
    assert f"q{secret}." in str(everywhere["queues"])
    assert f"q{secret}." not in str(narrowed["queues"])
    assert f"q{secret}" in str(everywhere["overview"])
    assert f"q{secret}" not in str(narrowed["overview"])
    assert MARK not in str(narrowed)
    assert everywhere["overview"].keys() >= {"total.ready", "total.dead"}
    assert "total.dead" not in narrowed["overview"]


def test_a_topic_of_all_queues_is_not_joined() -> None:
    topics.register("of all", lambda _: {})

    async def join() -> list[str]:
        hub = Hub(lambda: "postgresql://nowhere.invalid/")
        client = hub.join(["of all", "queues:"], VisibleQueues(frozenset(), frozenset()))
        joined = [feed.topic.name for feed in hub.feeds]
        hub.leave(client)
        await hub.close()
        return joined

    try:
        assert asyncio.run(join()) == ["queues"]
    finally:
        del topics._topics["of all"]


def test_a_scope_costs_no_statement_to_others(world: World) -> None:
    root = world.client("root")
    root.get("/queues/")
    with CaptureQueriesContext(connections["default"]) as asked:
        root.get("/queues/")
    people = [each["sql"] for each in asked.captured_queries if "queuescope" in each["sql"]]
    assert len(people) == 1
    assert '"auth_user"' in people[0]


def test_an_index_of_texts_tells_nothing_of_another_queue(
    world: World, narrow: Client, planted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither how many messages lie there, nor whether many have a word, nor by how long they are read."""
    _die(world, INSIDE, "Mine4711")
    with postgresql().connect(world.queues_dsn) as builder:
        text_index.build(builder)
    world.queues.run("analyze messages.message_archive")
    monkeypatch.setattr(text_search, "BY_INDEX", 100)
    paths = ["/archive/?q=plenty4711", "/messages/plenty4711/", "/messages/none4711/", "/messages/Mine4711/"]
    before = {path: _settled(narrow.get(path)) for path in paths}
    whole = {path: _settled(world.client("root").get(path)) for path in paths}
    assert {path for path, page in whole.items() if "by index" not in " ".join(page.split())} == set()
    world.queues.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, body)
        select now(), '{}', 'failed', 'w', 'transport', %(queue)s, 'plenty4711' from generate_series(1, 5000)""",
        {"queue": NAME},
    )
    world.queues.run("analyze messages.message_archive")
    told = [each for path in paths for each in _differing(before[path], _settled(narrow.get(path)))]
    assert not told, "\n".join(told)
    assert {path for path in paths if _settled(world.client("root").get(path)) == whole[path]} == set()
    assert {path for path in paths if "by index" in " ".join(before[path].split())} == set()
    asked = {"q": "plenty4711", "w": pagination.pack(["index", None, None])}
    assert "by index" not in " ".join(_settled(narrow.get("/archive/", asked)).split())
    posted = {"act": "discard", "all": "matching", **asked}
    refused = narrow.post("/operations/", posted, follow=True).content.decode()
    assert "what it has covered is not known" in refused
