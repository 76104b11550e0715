"""Every address the product answers, from its urlpatterns, with examples for each."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from pgqueue_admin.models import (
    Alert,
    AlertMail,
    AuditEntry,
    Endpoint,
    FailureGroup,
    ForeignOutbox,
    MaskingReveal,
    MaskingRule,
    Operation,
    Process,
    QueueScope,
    RetryRule,
    SavedView,
    Schedule,
    Trial,
)
from tests.hostile.hostile_site import OUTBOX, World
from tests.hostile.payloads import LINK, MARKUP

# addresses that only take POST: a GET is told so
ACTS = {
    "sign_out", "alert_acknowledgement", "alert_acknowledgements", "endpoint_settings", "endpoint_effect",
    "endpoint_start", "endpoint_stop",
    "endpoint_scale", "endpoint_pause", "endpoint_resume", "endpoint_restart", "endpoint_withdraw", "endpoint_undo",
    "queue_settings_undo", "operation_start", "operation_cancel", "move_out", "host_give_up",
    "operation_pause", "operation_resume", "operation_rate", "retry_rule_remove", "lease_rule_remove",
    "history_run", "history_cancel", "history_recompute", "admin:logout", "schedule_read", "schedule_pause",
    "schedule_resume", "schedule_run", "schedule_remove", "lease_release", "lease_end", "lease_acts", "outbox_dispatch",
    "outbox_allow",
    "outbox_keep", "admin:pgqueue_outbox_dispatch",
    "failure_assignment", "failure_acknowledgement", "audit_export", "post_mark", "waiting_acts", "unsubscribe",
    "subscribe_again",
    "archive_export", "view_rename", "view_remove", "view_default", "columns", "crossing_decide",
"masking_reveal",
}  # fmt: skip
OF_OPERATION = ("start", "cancel", "pause", "resume", "rate", "edit")
PLAIN = {
    "live", "healthz", "readyz", "sign_in", "sign_out", "password", "person", "keys", "overview", "queues", "alerts",
    "alert_mails", "delayed", "endpoints", "workers", "settings", "operations", "finder", "admin:index",
    "admin:login", "admin:logout", "admin:password_change", "admin:password_change_done", "admin:autocomplete",
    "admin:jsi18n", "subscriptions", "trends", "unwatched", "history", "history_run", "history_cancel",
    "history_recompute", "alert_acknowledge", "alert_acknowledgements", "schedules",
    "schedule_new", "schedule_read", "outboxes", "failures", "failures_chosen", "metrics", "audit", "audit_export",
    "post_mark", "bin", "unsubscribe", "archive_export", "views", "retry_rules", "lease_rules",
    "masking", "masking_reveal",
    "trial_new", "columns", "archive_suggestions", "scopes", "crossings",
}  # fmt: skip
WITH_DAYS = ("finished", "history_days", "trends_types")
# a rule would refuse searches: tests that want one make it
OFTEN_EMPTY = (ForeignOutbox, MaskingReveal, MaskingRule, QueueScope)
MODEL_PAGES = ("changelist", "add", "history", "delete", "change")


class NoExample(AssertionError):
    """An address was added: give it an example here, so that every test of this folder asks for it too."""


def names(resolver: URLResolver | None = None, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Name and pattern of each address."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern, (*prefix, *filter(None, [pattern.namespace])))
        elif isinstance(pattern, URLPattern):
            yield ":".join([*prefix, pattern.name or ""]), str(pattern.pattern)


def paths(world: World) -> list[tuple[str, str]]:
    """Name and path, one or more for each pattern."""
    found = []
    known = _examples(world)
    for name, pattern in names():
        examples = _plain(name) or known.get(name) or _of_model(name) or _unnamed(name, pattern)
        if not examples:
            raise NoExample(f"{name} ({pattern})")
        found += [(name, path) for path in examples]
    return list(dict.fromkeys(found))


def few(paths: Iterable[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """So many examples of each name: for what depends on an address, and not on whose text is shown there."""
    met = Counter[str]()
    return [(name, path) for name, path in paths if met.update([name]) or met[name] <= most]


def _plain(name: str) -> list[str]:
    return [reverse(name)] if name in PLAIN else []


def _examples(world: World) -> dict[str, list[str]]:
    dead, queues = world.dead, [{"schema": each.schema, "table": each.table} for each in world.addresses]
    queues.append({"schema": "public", "table": "Sales"})
    waiting = [{"schema": a.schema, "table": a.table, "row_id": row_id} for a, row_id in world.waiting]
    entry = AuditEntry.objects.values_list("pk", flat=True)[0]
    endpoints = [{"name": name} for name in Endpoint.objects.values_list("name", flat=True)]
    operations, alerts = _keys(Operation, "number"), _keys(Alert, "number")
    leases = [{**LEASES, "number": number} for number in (1, 2, 999)]
    archived = [{"archive_id": number} for number in dead]
    found: dict[str, list[dict[str, Any]]] = {
        **dict.fromkeys(("queue", "queue_ends", "messages", "queue_settings", "waiting_acts", "queue_send"), queues),
        "queue_settings_undo": [{**queues[-1], "entry_id": entry}],
        "subscribe_again": [{"entry_id": entry}],
        **dict.fromkeys(("waiting_message", "waiting_body", "copy_waiting"), waiting),
        **dict.fromkeys(("archived_message", "archived_body", "archived_headers", "edit_message"), archived),
        "copy_archived": archived,
        "crashing_message": [{"row_id": waiting[0]["row_id"]}],
        "move_out": [{"row_id": waiting[0]["row_id"]}],
        **dict.fromkeys(("endpoint", "endpoint_effect"), endpoints),
        **{f"endpoint_{verb}": endpoints[:2] for verb in _VERBS},
        "endpoint_undo": [{**endpoints[0], "entry_id": entry}],
        **dict.fromkeys(("worker_log", "worker_log_whole"), _keys(Process, "process_id")),
        "host_give_up": [{"host": MARKUP[:190]}, {"host": "house-2"}],
        **dict.fromkeys(("operation", *(f"operation_{verb}" for verb in OF_OPERATION)), operations),
        "trial": _keys(Trial, "number"),
        **{key: [{"number": 1}] for key in ("crossing", "crossing_decide")},
        **dict.fromkeys(("alert", "alert_acknowledgement"), alerts),
        "failure": [*_keys(FailureGroup, "fingerprint"), *_failures(world)],
        **dict.fromkeys(("failure_assignment", "failure_acknowledgement"), _keys(FailureGroup, "fingerprint")),
        "lease_publish": [LEASES],
        "lease_acts": [LEASES],
        **dict.fromkeys(("lease_message", "lease_release", "lease_end"), leases),
        "outbox": [OF_OUTBOX],
        "outbox_dispatch": [OF_OUTBOX],
        "outbox_allow": [OF_OUTBOX],
        "outbox_keep": [OF_OUTBOX],
        "outbox_record": [{**OF_OUTBOX, "message_id": f"{number} {MARKUP}"[:200]} for number in range(4)],
        **dict.fromkeys(_SCHEDULE, _keys(Schedule, "schedule_id")),
        **dict.fromkeys(("view", "view_rename", "view_remove", "view_default"), _keys(SavedView, "slug", "slug")),
        "alert_mail": _keys(AlertMail, "number"),
        "retry_rule_remove": _keys(RetryRule, "number"),
        "lease_rule_remove": [{"number": 1}, {"number": 999}],
"masking_rule": _keys(MaskingRule, "number") or [{"number": 1}],
        "find_message": [{"any_id": each} for each in (MARKUP, waiting[0]["row_id"], str(dead[0]), "nobody's")],
        "conversation": [{"conversation_id": each} for each in (LINK, MARKUP, "nobody's")],
        "admin:app_list": [{"app_label": "pgqueue"}, {"app_label": "auth"}],
        "admin:auth_user_password_change": [{"id": 1}],
        "admin:view_on_site": [{"content_type_id": 1, "object_id": 1}],
    }  # fmt: skip
    found["admin:pgqueue_outbox_dispatch"] = [{}]
    found["admin:pgqueue_operation_confirm"] = [{"pk": each["number"]} for each in operations]
    archive = {"archive": [f"{reverse('archive')}{more}" for more in ("", "?q=&facets=open&sort=-sent")]}
    named = {name: [reverse(name, kwargs=each) for each in given] for name, given in found.items()}
    return named | archive | _of_history(world) | _of_outbox()


def _of_outbox() -> dict[str, list[str]]:
    records, record = "admin:pgqueue_outbox_records", "admin:pgqueue_outbox_record"
    listed = [{}, {"state": "dispatched"}, {"after": MARKUP}]
    shown = [{"id": f"{number} {MARKUP}"[:200]} for number in range(4)]
    return {
        records: [f"{reverse(records)}?{urlencode({**OF_OUTBOX, **more})}" for more in listed],
        record: [f"{reverse(record)}?{urlencode({**OF_OUTBOX, **more})}" for more in shown],
    }


def _of_history(world: World) -> dict[str, list[str]]:
    """Whose addresses tell more than their path does."""
    days = {"since": "2026-11-14", "until": "2026-11-15"}
    one = [
        f"{reverse('finished_message', args=[seq])}?{urlencode({'source': source, 'at': at.isoformat()})}"
        for source, seq, at in world.finished
    ]
    asked = {name: [reverse(name), f"{reverse(name)}?{urlencode(days)}"] for name in WITH_DAYS}
    return {**asked, "finished_message": one}


LEASES = {"schema": "messages", "table": "message"}
OF_OUTBOX = {"schema": OUTBOX.schema, "table": OUTBOX.table}
_SCHEDULE = ("schedule", "schedule_pause", "schedule_resume", "schedule_run", "schedule_remove")
_VERBS = ("settings", "start", "stop", "scale", "pause", "resume", "restart", "withdraw")


def _failures(world: World) -> list[dict[str, Any]]:
    """Of messages that were made here."""
    asked = (
        "select distinct fingerprint from messages.message_dead where id = any (%(dead)s) and fingerprint is not null"
    )
    return [{"fingerprint": row.fingerprint} for row in world.queues.all(asked, {"dead": world.dead})]


def _keys(model: Any, name: str, of: str = "pk") -> list[dict[str, Any]]:
    return [{name: key} for key in model.objects.order_by("pk").values_list(of, flat=True)]


def _of_model(name: str) -> list[str]:
    """Django admin's five pages of each model, for the newest row."""
    for model in admin.site._registry:
        for page in MODEL_PAGES:
            if name == f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}":
                newest = model._default_manager.order_by("-pk").first()
                assert newest or model in OFTEN_EMPTY, f"no row of {model._meta.label} to look at"
                return [reverse(name, args=[] if page in {"changelist", "add"} else [newest.pk if newest else 1])]
    return []


def _unnamed(name: str, pattern: str) -> list[str]:
    """Django admin's catch-all, and its old addresses of one row."""
    if name != "admin:":
        return []
    return ["/admin/no/such/page/"] if "url" in pattern else ["/admin/pgqueue/operation/1/"]


def get(client: Client, paths: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, Any]]:
    """Name, path and answer of each; a stream is opened and left."""
    for name, path in paths:
        answer = client.get(path)
        if getattr(answer, "streaming", False) and name != "live":
            answer.content_read = b"".join(answer) if not answer.is_async else b""  # type: ignore[attr-defined]
        yield name, path, answer
        if getattr(answer, "streaming", False):  # the client has closed others; twice, each page opens a session anew
            answer.close()
