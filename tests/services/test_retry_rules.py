"""Retry rules: previewed, followed exactly, only into known input queues, and undone by a call back."""

import io
import re
import time
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Operation, Queue
from pgqueue_admin.services import retry_rules
from pgqueue_admin.services.operations import call_back, lifecycle, queries, redirects, runner, selection
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.redirects import Rule
from pgqueue_admin.transport import Endpoint as Engine
from tests.archived_messages import BILLING, REFUSED, archived, number_in, person, succeed
from tests.staged_retries import sent

V2 = '"public"."Billing.V2"'


@pytest.fixture
def session(archived_console: str) -> Iterator[Connection]:
    Engine("Billing.V2", archived_console).create_queues()
    Queue.objects.create(schema="public", table="Billing.V2", kind="input")
    with postgresql().connect(archived_console, for_handlers=True) as connection:
        yield connection


@pytest.fixture
def chief(session: Connection) -> User:
    return person("chief", "change_settings", "retry_message", "discard_message")


def retried(person: Any, *rules: int) -> Operation:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), person, "console")
    lifecycle.start(operation.pk, person, rules=rules)
    runner.run(operation.pk)
    operation.refresh_from_db()
    return operation


@pytest.mark.parametrize(
    ("type_", "queue", "fits"),
    [
        ("Shop.Place", "", True), ("Shop.*", "", True), ("*", BILLING, True), ("", BILLING, True),
        ("*.Place", "", True), ("shop.*", "", False), ("Shop.Pl", "", False), ("Shop?Place", "", False),
        ("Shop.*", V2, False), ("", V2, False), ("S*o*.*Pl*e", "", True), ("**Place*", "", True),
        ("Shop*hop.*", "", False), ("Shop.Place*ce", "", False), ("*Place*Place", "", False),
        ("Sh*P*.*", "", False), ("*Shop.Place*", "", True),
    ],
)  # fmt: skip
def test_rule_matches_type_and_queue(type_: str, queue: str, fits: bool) -> None:
    assert Rule(1, type_, queue, V2).fits("Shop.Place", BILLING) is fits


@pytest.mark.parametrize("text", ["." * 100_000, "a." * 50_000, "." * 100_000 + "\n"])
def test_hostile_type_names_are_matched_quickly(text: str) -> None:
    """With a pattern of the greatest length; a backtracking regular expression would take years."""
    began = time.process_time()
    assert not Rule(1, "*." * 197 + "*Place", "", V2).fits(text, BILLING)
    assert Rule(1, "*." * 197 + "*Place", "", V2).fits(f"{text}Place", BILLING)
    assert time.process_time() - began < 1


def test_messages_of_a_dropped_queue_are_retried_to_its_new_name(session: Connection, chief: User) -> None:
    rule = retry_rules.create("", BILLING, V2, chief, "console", "renamed")
    session.run(f"drop table {BILLING}")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), chief, "console")
    shown = queries.retry_targets(session, frozen, redirects.rules())
    assert [(each.rule.number, each.messages, each.blocking_reason) for each in shown.ruled] == [(rule.pk, 88, "")]
    assert (shown.lost, shown.count) == (0, 88)
    Endpoint.objects.create(name="V2", schema="public", table="Billing.V2")
    operation = retried(chief, rule.pk)
    assert (operation.done, operation.failed, operation.queues) == (88, 0, {V2: 88})
    assert number_in(V2) == 88
    entry = AuditEntry.objects.get(verb="retry")
    assert (entry.after or {})["rules"][0]["target"] == V2
    assert succeed(session, sent(operation)[0]), "it is told from there what became of it"
    back = call_back.prepare(operation.pk, chief, "console")
    assert back.queues == {V2: 87}


def test_rules_that_were_not_chosen_do_not_apply(session: Connection, chief: User) -> None:
    """Even if a later, chosen rule matches too."""
    retry_rules.create("", BILLING, V2, chief, "console")
    later = retry_rules.create("Sh*", "", V2, chief, "console")
    before = number_in(BILLING)
    assert retried(chief, later.pk).done == 88
    assert (number_in(BILLING), number_in(V2)) == (before + 88, 0)


def test_a_target_that_is_no_known_input_queue_any_more_skips_them(session: Connection, chief: User) -> None:
    rule = retry_rules.create("", BILLING, V2, chief, "console")
    Queue.objects.filter(table="Billing.V2").update(kind="audit")
    operation = retried(chief, rule.pk)
    assert (operation.done, operation.skipped) == (0, 88)
    (why,) = {each.why for each in queries.not_done(session, operation.pk)}
    assert why.startswith(f"Rule {rule.pk} sends it elsewhere: ")
    assert "audit" in why
    assert number_in(V2) == 0


def test_called_back_they_belong_to_the_queue_where_they_died(session: Connection, chief: User) -> None:
    operation = retried(chief, retry_rules.create("", BILLING, V2, chief, "console").pk)
    back = call_back.prepare(operation.pk, chief, "console")
    lifecycle.start(back.pk, chief)
    runner.run(back.pk)
    (first, *_) = store.page(session, ArchiveFilter(exception=REFUSED)).messages
    assert archived(first.id).target == Address("public", "Billing")
    assert number_in(V2) == 0


def test_rule_removed_since_the_preview_starts_nothing(session: Connection, chief: User) -> None:
    rule = retry_rules.create("Shop.*", "", V2, chief, "console")
    retry_rules.remove(rule.pk, chief, "console", "not any more")
    with pytest.raises(AlreadyDecided, match="was removed since you looked"):
        retried(chief, rule.pk)
    assert Operation.objects.get().state == Operation.State.FROZEN
    kept = AuditEntry.objects.filter(noun=retry_rules.NOUN).order_by("id").values_list("verb", "who", "reason")
    assert list(kept) == [("create", "chief", ""), ("remove", "chief", "not any more")]
    with pytest.raises(AlreadyDecided):
        retry_rules.remove(rule.pk, chief, "console")


@pytest.mark.parametrize(
    ("type_", "queue", "target"),
    [
        ("", "", V2), ("**", "", V2), ("Shop.*", "", '"public"."nothing"'), ("Shop.*", "", '"pg_catalog"."pg_class"'),
        ("", V2, V2), ("x" * 401, "", V2), ("a\0b", "", V2), ("Shop.*", "", ""),
        ("Shop.*", "", '"public"."error"'),
    ],
)  # fmt: skip
def test_invalid_rule_is_refused(session: Connection, chief: User, type_: str, queue: str, target: str) -> None:
    with pytest.raises(OperationRefused):
        retry_rules.create(type_, queue, target, chief, "console")
    assert not AuditEntry.objects.filter(noun=retry_rules.NOUN).exists()


def test_only_who_may_change_settings(session: Connection, ana: User) -> None:
    with pytest.raises(OperationNotAllowed):
        retry_rules.create("Shop.*", "", V2, ana, "console")


def test_second_rule_for_the_same_messages_is_refused(session: Connection, chief: User) -> None:
    retry_rules.create("Shop.*", "", V2, chief, "console")
    with pytest.raises(AlreadyDecided, match="Remove it first"):
        retry_rules.create("Shop.*", "", V2, chief, "console")


def test_messages_refused_by_the_rules_target_keep_their_queue(session: Connection, chief: User) -> None:
    rule = retry_rules.create("", BILLING, V2, chief, "console")
    session.run(f"alter table {V2} add constraint none check (body is null)")
    operation = retried(chief, rule.pk)
    assert (operation.done, operation.failed) == (0, 88)
    (first, *_) = store.page(session, ArchiveFilter(exception=REFUSED)).messages
    assert (first.state, archived(first.id).target) == ("dead", Address("public", "Billing"))


@pytest.fixture
def spied(session: Connection) -> Iterator[str]:
    """Another role's trigger on the rule's target; yields its name."""
    session.run("create role outsider")
    session.run("create function public.spy() returns trigger language plpgsql as $$ begin return new; end $$")
    session.run("alter function public.spy() owner to outsider")
    session.run(f"create trigger spies before insert on {V2} for each row execute function public.spy()")
    yield "trigger spies of role outsider"
    session.run(f"drop trigger spies on {V2}")
    session.run("drop function public.spy()")
    session.run("drop role outsider")


def test_code_of_others_at_a_rules_target_is_named_before_it_runs(
    session: Connection, chief: User, client: Client, spied: str
) -> None:
    retry_rules.create("", BILLING, V2, chief, "console")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), chief, "console")
    client.force_login(chief)
    assert spied in client.get(f"/operations/{frozen.pk}/").content.decode()
    asked = io.StringIO()
    with pytest.raises(CommandError):
        call_command("dead", "retry", "--exception", REFUSED, "--by-rules", stdout=io.StringIO(), stderr=asked)
    assert f"{V2} runs code of others with the rights of this console: {spied}" in asked.getvalue()


def test_foreign_code_is_named_only_for_targets_of_chosen_rules(session: Connection, chief: User, spied: str) -> None:
    retry_rules.create("", BILLING, V2, chief, "console")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), chief, "console")
    assert queries.retry_targets(session, frozen).running == []
    (named,) = queries.retry_targets(session, frozen, redirects.rules()).running
    assert (named.target.name, named.target.runs, named.messages) == (V2, (spied,), 88)
    Queue.objects.filter(table="Billing.V2").update(kind="audit")
    assert queries.retry_targets(session, frozen, redirects.rules()).running == []


def test_the_preview_says_one_place_for_the_same_messages(session: Connection, chief: User, client: Client) -> None:
    """The heading, the table of the set, and the receiver that it waits for."""
    Endpoint.objects.create(name="V2", schema="public", table="Billing.V2", desired_processes=0)
    Queue.objects.filter(table="Billing.V2").update(endpoint="V2")
    retry_rules.create("", BILLING, V2, chief, "console")
    frozen = selection.freeze("retry", ArchiveFilter(exception=REFUSED), chief, "console")
    client.force_login(chief)
    said = unescape(client.get(f"/operations/{frozen.pk}/?plan=careful").content.decode())
    assert "Retry 88 messages to Billing.V2 in demo?" in said
    assert re.search(r'Into</th>\s*<td class="wrap-any">Billing\.V2</td>\s*<td class="num">88<', said)
    assert "Retry 88 in demo when Billing.V2 receives" in said
