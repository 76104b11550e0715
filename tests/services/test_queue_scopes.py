"""Scopes of groups: which queues their patterns match, what users see by them, and who may grant them."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db.models import ProtectedError

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.models import Alert, AuditEntry, Endpoint, Operation, Queue, QueueScope, RetryRule, database_clock
from pgqueue_admin.services import queue_access, queue_scopes
from pgqueue_admin.services.operations import call_back, lifecycle, redirects, selection
from pgqueue_admin.services.operations.errors import OperationNotAllowed
from pgqueue_admin.services.queue_scopes import ScopeNotAllowed, ScopeRefused
from tests.archived_messages import person
from tests.console.sampled import sample

MATCHES = (
    ("public.Billing", "public", "Billing", True),
    ("public.Billing", "public", "Billing.Delayed", False),
    ("public.Billing", "public", "billing", False),
    ("public.Billing.*", "public", "Billing.Delayed", True),
    ("public.*", "public", "", True),
    ("public.*", "publicity", "x", False),
    ("pub*.x", "public.more", "x", True),
    ("public.a.b", "public.a", "b", False),  # the first dot ends the schema
    ("*.*", "Legacy", "x\ny", True),
    ("*", "billing:public", "x", True),
    ("billing:*.x", "billing:public", "x", True),
    ("billing:*.x", "public", "x", False),
    ("public.[a-z]%_", "public", "abc", False),
    ("public.*a*", "public", "banana", True),
)


@pytest.fixture
def group(archive: None) -> Group:
    sample()
    return Group.objects.create(name="billing")


def member(name: str, *groups: Group) -> User:
    found = person(name, "retry_message", "discard_message")
    found.groups.set(groups)
    return found


@pytest.mark.parametrize(("pattern", "schema", "table", "does"), MATCHES)
def test_a_pattern_is_of_schema_and_queue(pattern: str, schema: str, table: str, does: bool) -> None:
    assert queue_access.matcher(pattern)(schema, table) is does


def test_user_without_a_scope_sees_every_queue(group: Group, ana: User) -> None:
    root = User.objects.create_superuser("root")
    queue_scopes.give(group, "public.Billing", root, "console")
    root.groups.add(group)
    assert [queue_access.of(each) for each in (ana, root, "somebody with a shell", AnonymousUser())] == [None] * 4
    assert queue_access.of(member("bo", Group.objects.create(name="others"))) is None


def test_groups_add_up_and_nothing_is_seen_where_nothing_matches(group: Group) -> None:
    more, none = Group.objects.create(name="sales"), Group.objects.create(name="none")
    queue_scopes.give(group, "public.Billing", "root", "console", may_act=True)
    queue_scopes.give(more, "public.Sales", "root", "console")
    queue_scopes.give(none, "nowhere.*", "root", "console")
    seen = queue_access.of(member("bo", group, more))
    assert seen
    billing, sales = Address("public", "Billing"), Address("public", "Sales")
    assert (seen.seen, seen.acted_on, seen.there) == ({billing, sales}, {billing}, 2)
    nothing = queue_access.of(member("cy", none))
    assert nothing
    assert (nothing.seen, nothing.ids, nothing.names) == (frozenset(), (), ())
    with visible_queues.within(nothing):
        assert not Queue.objects.exists()


def test_rows_below_the_pages_are_of_what_is_seen(group: Group) -> None:
    now = database_clock.now()
    for name in ("Billing", "Sales"):
        queue = f'"public"."{name}"'
        Endpoint.objects.create(name=name, table=name)
        about = {"sentence": name, "severity": "critical", "opened_at": now, "last_seen_at": now}
        Alert.objects.create(kind="off_target", subject=queue, queue=queue, **about)
        AuditEntry.objects.create(who="ana", verb="set", noun="queue", subject=queue, origin="console")
        Operation.objects.create(kind="retry", queues={queue: 1}, who="ana", origin="console")
    both = {'"public"."Billing"': 1, '"public"."Sales"': 1}
    Operation.objects.create(kind="retry", queues=both, who="ana", origin="console")
    Operation.objects.create(kind="retry", queues={}, who="ana", origin="console")
    # these count by where messages go, whatever queue they died in
    Operation.objects.create(kind="retry", queues={'"public"."Billing"': 1}, rules=[[1, "", "x", "y"]], who="ana")
    Operation.objects.create(kind=Operation.Kind.CALL_BACK, queues={'"public"."Billing"': 1}, who="ana")
    Alert.objects.create(
        kind="no_alerter", subject="house-1", sentence="x", severity="critical", opened_at=now, last_seen_at=now
    )
    queue_scopes.give(group, "public.Billing", "root", "console")
    with visible_queues.within(queue_access.of(member("bo", group))):
        assert [each.name for each in Endpoint.objects.all()] == ["Billing"]
        assert [each.sentence for each in Alert.objects.all()] == ["Billing"]
        assert [each.subject for each in AuditEntry.objects.all()] == ['"public"."Billing"']
        assert [each.queues for each in Operation.objects.all()] == [{'"public"."Billing"': 1}]
    assert Operation.objects.count() == 6


def test_scoped_user_retries_into_visible_queues_only(group: Group, archived_console: str) -> None:
    """A retry's worker has no scope, so the scope is checked at the start."""
    queue_scopes.give(group, "public.Billing", "root", "console", may_act=True)
    bo = member("bo", group)
    RetryRule.objects.create(queue='"public"."Billing"', target='"public"."Sales"', who="root")
    with postgresql().connect(archived_console) as connection:
        asked = "select id from messages.message_archive where state = 'dead' and target_table = 'Billing' order by id"
        number = connection.value(f"{asked} limit 1")
        elsewhere = "update messages.message_archive set target_table = 'Sales' where id = %(id)s"
        connection.run(elsewhere, {"id": number})
    with visible_queues.within(queue_access.of(bo)):
        assert redirects.rules() == []
        operation = selection.freeze("retry", [number], bo, "console")
        with pytest.raises(OperationNotAllowed, match="1 would go into queues that you may not act on"):
            lifecycle.start(operation.pk, bo)
        with pytest.raises(OperationNotAllowed, match="rules name any queue"):
            lifecycle.start(operation.pk, bo, rules=[RetryRule.objects.get().pk])
        with pytest.raises(OperationNotAllowed, match="people who see every queue"):
            call_back.prepare(operation.pk, bo, "console")
    operation.refresh_from_db()
    assert operation.state == Operation.State.FROZEN


def test_visible_queues_are_looked_up_lazily_and_once() -> None:
    asked = list[int]()

    def ask() -> VisibleQueues:
        asked.append(1)
        return VisibleQueues(frozenset(), frozenset())

    visible_queues.begin(ask)
    try:
        assert asked == []
        assert visible_queues.current() is visible_queues.current()
        assert asked == [1]
    finally:
        visible_queues.end()
    assert visible_queues.current() is None


def test_all_matching_is_narrowed_where_it_is_frozen(group: Group) -> None:
    queue_scopes.give(group, "public.Billing", "root", "console", may_act=True)
    bo = member("bo", group)
    everywhere = selection.freeze("discard", ArchiveFilter(), "root", "console")
    with visible_queues.within(queue_access.of(bo)):
        own = selection.freeze("discard", ArchiveFilter(), bo, "console")
    assert len(everywhere.queues) > 1
    assert own.queues == {name: count for name, count in everywhere.queues.items() if name == '"public"."Billing"'}


def test_each_change_is_in_the_audit_and_a_group_is_not_deleted_with_them(group: Group) -> None:
    made = queue_scopes.give(group, " public.Billing ", "root", "console", "SEC-7")
    queue_scopes.let_act(made.pk, "root", "console", may_act=True)
    with pytest.raises(ProtectedError):
        group.delete()
    queue_scopes.take(made.pk, "root", "console")
    said = [(each.verb, each.subject, each.before, each.after) for each in AuditEntry.objects.filter(noun="scope")]
    looks, acts = ({"pattern": "public.Billing", "may_act": each} for each in (False, True))
    assert said == [
        ("remove", "billing", acts, None),
        ("set", "billing", looks, acts),
        ("create", "billing", None, looks),
    ]
    group.delete()


@pytest.mark.parametrize("pattern", ["", "Billing", ".Billing", "public.", "x" * 301 + ".y", "public.\x07"])
def test_invalid_scope_pattern_is_refused(group: Group, pattern: str) -> None:
    with pytest.raises(ScopeRefused, match="Nothing was changed"):
        queue_scopes.give(group, pattern, "root", "console")
    assert not QueueScope.objects.exists()


def test_the_same_twice_is_refused(group: Group) -> None:
    queue_scopes.give(group, "public.*", "root", "console")
    with pytest.raises(ScopeRefused, match=r"billing has public\.\* already"):
        queue_scopes.give(group, "public.*", "root", "console", may_act=True)


def test_scope_change_needs_every_right_that_it_gives(group: Group) -> None:
    changer, narrow = person("cy", "change_group"), person("di", "change_group")
    made = queue_scopes.give(group, "public.Billing", changer, "console")
    narrow.groups.add(group)
    group.permissions.add(Permission.objects.get(codename="run_endpoint"))
    for who, why in (
        (narrow, "see every queue"),
        (changer, "every right that billing gives"),
        (person("e"), "change group"),
    ):
        with pytest.raises(ScopeNotAllowed, match=why):
            queue_scopes.take(made.pk, who, "console")
        with pytest.raises(ScopeNotAllowed, match=why):
            queue_scopes.let_act(made.pk, who, "console", may_act=True)
        with pytest.raises(ScopeNotAllowed, match=why):
            queue_scopes.give(group, "public.*", who, "console")
    assert QueueScope.objects.get().pattern == "public.Billing"
