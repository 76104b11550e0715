"""Acts on messages and failures from a shell: the same services as on the pages, audited under a name."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from pgqueue_admin.archive import fingerprints
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, FailureGroup, Queue, RetryRule, queue_database
from tests.archived_messages import BILLING, archived, dead
from tests.databases import Databases

QUEUE, OTHER = Address("public", "Billing"), Address("public", "Sales")
HEADERS = json.dumps(
    {"NServiceBus.MessageId": "m-1", "NServiceBus.EnclosedMessageTypes": "Shop.Try", "Shop.Who": "Ana"}
)


@pytest.fixture(autouse=True)
def queues(archived_console: str, connect: Callable[[str], Connection]) -> Connection:
    """Billing, Sales and Billing's delayed table, known to the console and allowing acts."""
    connection = connect(archived_console)
    for address in (QUEUE, OTHER):
        connection.run(postgresql().queue.create(table=address))
        Queue.objects.update_or_create(
            schema=address.schema,
            table=address.table,
            defaults={"kind": "input", "acts_allowed": True, "gone_since": None},
        )
    return connection


def run(*argv: str) -> tuple[int, str]:
    """Exit code and output, as in a shell."""
    out = io.StringIO()
    try:
        call_command(*argv, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def put(connection: Connection, address: Address = QUEUE) -> str:
    row_id = uuid4()
    values = {"id": row_id, "ttbr_ms": None, "headers": HEADERS, "body": b"{}"}
    connection.run(postgresql().queue.send(table=address), values)
    return str(row_id)


def count(connection: Connection, address: Address) -> int:
    return int(connection.value(f'select count(*) from "{address.schema}"."{address.table}"') or 0)


def test_waiting_messages_are_searched_as_on_their_page(queues: Connection) -> None:
    queues.run('delete from "public"."Billing"')
    one, two, three = (put(queues) for _ in range(3))
    queues.run('update "public"."Billing" set body = \'{"order": 4711}\' where id <> %(id)s', {"id": three})
    found = json.loads(run("waiting", "list", "Billing", "--search", "body.order:4711 type:Try", "--json")[1])
    assert {each["row"] for each in found["messages"]} == {one, two}
    assert (found["looked_at"], found["more"]) == (3, False)
    code, said = run("waiting", "list", "Billing", "--search", "body:order", "--limit", "1")
    assert code == 0
    first = queues.value('select min(seq) from "public"."Billing"')
    assert said.splitlines()[-1] == f"1 message of Billing. Looked through 3 rows; there are more: seq:>{first}."
    assert run("waiting", "list", "Billing", "--search", f"body:order seq:>{first}")[1].count("Shop.Try") == 1
    assert run("waiting", "list", "Billing", "--search", "age:>1hh")[0] == 2
    assert run("waiting", "list", "Billing", "--search", "is:expired")[0] == 0
    code, said = run("waiting", "list", "Billing", "--search", "host:x")
    assert (code, "no machine has handled what waits" in said) == (2, True)


def test_waiting_messages_are_listed_and_acted_on(queues: Connection) -> None:
    queues.run('delete from "public"."Billing"')
    one, two, three, four = (put(queues) for _ in range(4))
    code, said = run("waiting", "list", "Billing", "--json")
    assert (code, {each["row"] for each in json.loads(said)["messages"]}) == (0, {one, two, three, four})
    before = count(queues, OTHER)
    code, said = run("waiting", "move", "Billing", one, "--to", "Sales", "--yes", "--as", "ivo", "--reason", "r")
    assert (code, count(queues, OTHER)) == (0, before + 1), said
    code, said = run("waiting", "discard", "Billing", two, one, "--yes", "--as", "ivo")
    assert code == 1, said
    assert f"{one}  skipped  It is not there now." in said
    assert run("waiting", "archive", "Billing", three, "--yes", "--as", "ivo")[0] == 0
    code, said = run("waiting", "discard", "Billing", four)
    assert (code, "Confirm with y, or give --yes." in said) == (4, True)
    assert count(queues, QUEUE) == 1
    code, said = run("waiting", "move", "Billing", four, "--to", "Nowhere", "--yes")
    assert (code, count(queues, QUEUE)) == (2, 1)
    entries = AuditEntry.objects.filter(who="ivo", origin="command")
    assert {each.verb for each in entries} == {"move", "discard", "move out"}


def test_waiting_messages_of_a_read_only_database_are_listed(
    queues: Connection, databases: Databases, settings: Settings, connect: Callable[[str], Connection]
) -> None:
    with databases.clone("empty") as dsn:
        stock = {"URL": dsn, "SCHEMAS": ["public"]}
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"stock": stock}}
        connect(dsn).run(postgresql().queue.create(table=QUEUE))
        row = put(connect(dsn))
        code, said = run("waiting", "list", '"stock:public"."Billing"')
        assert (code, row in said) == (0, True), said
        assert run("waiting", "discard", '"stock:public"."Billing"', row, "--yes")[0] == 2
        assert run("waiting", "list", '"stock:public"."Nowhere"')[0] == 2
        assert run("waiting", "list", '"stock:messages"."message"')[0] == 2
        queue_database.close()


def test_a_delayed_message_is_run_or_cancelled(queues: Connection) -> None:
    table = Address("public", "Billing.Delayed")
    queues.run('delete from "public"."Billing.Delayed"')
    late = {"headers": [HEADERS, HEADERS], "bodies": [b"{}", b"{}"], "ats": [None, None], "delays_ms": [10**8, 10**8]}
    queues.run(postgresql().delayed.store(table=table), late)
    Queue.objects.update_or_create(schema="public", table=table.table, defaults={"kind": "delayed", "gone_since": None})
    found = json.loads(run("waiting", "list", '"public"."Billing.Delayed"', "--json")[1])["messages"]
    assert run("waiting", "list", '"public"."Billing.Delayed"', "--search", "seq:>1")[0] == 2
    assert "0 messages" in run("waiting", "list", '"public"."Billing.Delayed"', "--search", "body:nowhere")[1]
    assert len(found) == 2
    before = count(queues, QUEUE)
    name = '"public"."Billing.Delayed"'
    assert run("waiting", "run-now", name, str(found[0]["row"]), "--yes")[0] == 0
    assert count(queues, QUEUE) == before + 1
    assert run("waiting", "cancel", name, str(found[1]["row"]), "--yes")[0] == 0
    assert count(queues, table) == 0


def test_a_message_is_sent_and_copied(queues: Connection, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_text('{"Number": 7}')
    before = count(queues, QUEUE)
    asked = ("waiting", "send", "Billing", "--type", "Shop.Try", "--body", str(body), "--header", "Shop.Who: Ana")
    code, said = run(*asked, "--as", "ivo")
    assert (code, count(queues, QUEUE)) == (0, before + 1), said
    row = put(queues)
    code, said = run("waiting", "copy", "Billing", row, "--to", "Sales", "--as", "ivo")
    assert code == 0, said
    body.write_text("{")
    assert run(*asked)[0] == 2
    assert {each.verb for each in AuditEntry.objects.filter(who="ivo")} == {"send", "copy"}


def test_a_dead_message_is_edited_sent_elsewhere_and_copied(queues: Connection, tmp_path: Path) -> None:
    one, two, three = dead(3, state="dead", queue=BILLING, kind="transport")
    body = tmp_path / "body"
    body.write_bytes(b'{"Mended": true}')
    code, said = run("dead", "edit", str(one.id), "--body", str(body), "--header", "Shop.Who", "Ivo")
    assert (code, "give --reason" in said) == (2, True)
    about = ("--reason", "SHOP-1", "--as", "ivo")
    code, said = run("dead", "edit", str(one.id), "--body", str(body), "--header", "Shop.Who", "Ivo", *about)
    assert code == 0, said
    assert archived(one.id).state == "retried"
    newest = queues.one('select headers, body from "public"."Billing" order by seq desc limit 1')
    assert newest is not None
    assert bytes(newest.body) == b'{"Mended": true}'
    assert json.loads(newest.headers)["Shop.Who"] == "Ivo"
    before = count(queues, OTHER)
    code, said = run("dead", "edit", str(two.id), "--to", "Sales", *about)
    assert (code, count(queues, OTHER)) == (0, before + 1), said
    assert run("dead", "edit", str(three.id), *about)[0] == 2
    assert run("dead", "edit", str(three.id), "--header", "NServiceBus.MessageId", "x", *about)[0] == 2
    assert run("dead", "copy", str(three.id), "--to", "Sales", *about)[0] == 0
    assert archived(three.id).state == "dead"
    assert {each.verb for each in AuditEntry.objects.filter(who="ivo", origin="command")} == {"edit", "copy"}


def test_a_dead_lease_message_is_edited(queues: Connection, tmp_path: Path, settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    number = queues.value(
        "insert into messages.message_archive (created_at, message, result, handled_by, kind)"
        " values (now(), '{}', 'failed', 'thumbs', 'lease') returning id"
    )
    edit, body = ("dead", "edit", str(number), "--reason", "SHOP-1", "--body"), tmp_path / "document"
    for given in (b'{"a":', b'{"a": "\xff"}'):
        body.write_bytes(given)
        code, said = run(*edit, str(body))
        assert (code, "takes JSON alone" in said) == (2, True)
    body.write_bytes(b'{"a": 1}')
    code, said = run(*edit, str(body), "--header", "Tenant", "blue")
    assert (code, "has no headers" in said) == (2, True)
    code, said = run(*edit, str(body))
    assert code == 0, said
    assert queues.one("select message, retried_from from messages.message") == ({"a": 1}, number)
    assert AuditEntry.objects.get(verb="edit", origin="command").subject == '"messages"."message"'


def test_a_failure_gets_an_owner_and_is_acknowledged(queues: Connection) -> None:
    while fingerprints.catch_up(queues):
        pass
    found = json.loads(run("failure", "list", "--json")[1])["failures"]
    assert sum(each["dead"] for each in found) == queues.value(
        "select count(*) from messages.message_archive where state = 'dead'"
    )
    digest = found[0]["fingerprint"]
    assert run("failure", "assign", digest, "--take", "--note", "ours", "--as", "ivo")[0] == 0
    assert run("failure", "acknowledge", digest, "--for", "4h", "--as", "ivo", "--reason", "known")[0] == 0
    group = FailureGroup.objects.get(pk=digest)
    assert (group.owner, group.note, group.acknowledged_by) == ("ivo", "ours", "ivo")
    mine = json.loads(run("failure", "list", "--owner", "ivo", "--json")[1])["failures"]
    assert [(each["fingerprint"], each["acknowledged"]) for each in mine] == [(digest, True)]
    assert run("failure", "withdraw", digest)[0] == 0
    assert run("failure", "withdraw", digest)[0] == 2
    assert run("failure", "assign", "0" * 16, "--owner", "x")[0] == 2
    code, said = run("failure", "assign", digest, "0" * 16, "--ticket", "x", "--as", "ivo")
    assert (code, f"{digest} is changed." in said, f"{'0' * 16}  skipped" in said) == (1, True, True)
    assert run("failure", "acknowledge", digest, "--until-dead", "1")[0] == 2
    assert "ours" not in run("failure", "list")[1]
    assert {each.verb for each in AuditEntry.objects.filter(noun="failure", origin="command")} == {
        "set", "acknowledge", "withdraw",
    }  # fmt: skip


def test_retry_rules_are_kept_and_removed() -> None:
    code, said = run("retry_rule", "add", "--type", "Shop.Old*", "--to", "Sales", "--as", "ivo")
    assert code == 0, said
    rule = RetryRule.objects.get(message_type="Shop.Old*")
    assert "Shop.Old*" in run("retry_rule", "list")[1]
    assert run("retry_rule", "remove", str(rule.pk))[0] == 0
    assert run("retry_rule", "remove", str(rule.pk))[0] == 2


def test_lease_messages_are_listed_published_released_and_ended(
    queues: Connection, tmp_path: Path, settings: Settings, archived_console: str
) -> None:
    assert "schema is not watched" in run("lease", "list")[1]
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    assert run("lease", "list")[1] == "0 messages of message.\n"
    document = tmp_path / "document"
    document.write_text('{"kind": ')
    assert (run("lease", "publish", str(document))[0], run("lease", "publish", str(tmp_path))[0]) == (2, 2)
    document.write_text(json.dumps({"kind": f"render{ESCAPE}"}))
    for number in (1, 2, 3):
        assert run("lease", "publish", str(document), "--as", "ivo") == (0, f"1 message published as {number}.\n")
    queue = LeaseQueue(archived_console, name="thumbs")
    _, second = queue.claim(2)
    code, said = run("lease", "list", "--order", "locked")
    assert (code, "thumbs" in said, "\x1b" in said) == (0, True, False)
    found = json.loads(run("lease", "list", "--json")[1])["messages"]
    assert [(each["number"], each["state"], each["attempts"]) for each in found] == [
        (1, "locked", 1), (2, "locked", 1), (3, "waiting", 0)
    ]  # fmt: skip
    found = json.loads(run("lease", "list", "--search", "is:locked -id:1", "--json")[1])
    assert ([each["number"] for each in found["messages"]], found["looked_at"], found["more"]) == ([2], 3, False)
    code, said = run("lease", "list", "--search", "render", "--limit", "1", "--order", "newest")
    assert (code, said.splitlines()[-1]) == (0, "1 message of message. Looked through 3 rows; there are more: id:<3.")
    assert run("lease", "list", "--search", "render id:<3")[1].count("locked") == 2
    assert "which are all from there" in run("lease", "list", "--search", "body.kind:=nowhere")[1]
    code, said = run("lease", "list", "--search", "died:1h")
    assert (code, "has not ended" in said) == (2, True)
    assert run("lease", "list", "--search", "render", "--order", "locked")[0] == 2
    assert run("lease", "release", "1")[0] == 4, "nobody has confirmed"
    code, said = run("lease", "release", "1", "3", "999", "--yes", "--as", "ivo")
    assert (code, "3  skipped  It is not locked." in said) == (1, True)
    assert "The locks on 1 message are off" in said
    assert "999  skipped" in said
    assert run("lease", "end", "2", "3", "--yes")[0] == 2, "a reason is asked for"
    code, said = run("lease", "end", "2", "3", "--yes", "--rejected", "--reason", "SHOP-1", "--as", "ivo")
    assert (code, "2 messages ended as rejected" in said) == (0, True)
    assert queue.finish(second, "success") is None
    queue.close()
    assert {each.verb for each in AuditEntry.objects.filter(who="ivo", origin="command")} == {
        "publish", "release", "end",
    }  # fmt: skip


def test_lease_rules_are_kept_and_removed(queues: Connection, settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    assert "0 rules." in run("retry_rule", "list-lease")[1]
    code, said = run("retry_rule", "add-lease", "--type", "render.*", "--ended", "failed", "rejected", "--as", "ivo")
    assert code == 0, said
    (rule,) = json.loads(run("retry_rule", "list-lease", "--json")[1])["rules"]
    assert (rule["message_type"], rule["results"], rule["times"], rule["wait_seconds"], rule["retried"]) == (
        "render.*", ["failed", "rejected"], 3, 60, 0
    )  # fmt: skip
    assert "render.*, failed or rejected: 3 times, first after 1\xa0min" in run("retry_rule", "list-lease")[1]
    assert run("retry_rule", "add-lease", "--type", "render.*")[0] == 2
    assert run("retry_rule", "add-lease", "--times", "21")[0] == 2
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    assert "Nothing is retried now." in run("retry_rule", "list-lease")[1]
    assert run("retry_rule", "remove-lease", str(rule["id"]))[0] == 0
    assert run("retry_rule", "remove-lease", str(rule["id"]))[0] == 2
    assert {each.who for each in AuditEntry.objects.filter(noun="lease rule", verb="create")} == {"ivo"}


def test_a_subscription_is_ended_and_put_back(queues: Connection) -> None:
    queues.run(postgresql().subscription.create(table=Address("public", "SubscriptionRouting")))
    about = {"endpoint": "Sales", "topic": "Shop.Heard", "queueaddress": '"public"."Sales"'}
    queues.run(postgresql().subscription.subscribe(table=Address("public", "SubscriptionRouting")), about)
    assert "Sales  Shop.Heard" in run("subscription", "list")[1]
    code, said = run("subscription", "end", "Sales", "Shop.Heard", "--yes", "--as", "ivo")
    assert code == 0, said
    assert "Sales  Shop.Heard" not in run("subscription", "list")[1]
    assert run("subscription", "end", "Sales", "Shop.Heard", "--yes")[0] == 2
    assert run("subscription", "again", said.split("Change ")[1].rstrip(".\n"))[0] == 0
    assert "Sales  Shop.Heard" in run("subscription", "list")[1]


ESCAPE = "\x1b[2Jowned\x07\u202e\nRow"


def test_control_characters_of_messages_reach_no_terminal(queues: Connection) -> None:
    queues.run(postgresql().subscription.create(table=Address("public", "SubscriptionRouting")))
    about = {"endpoint": f"Sales{ESCAPE}", "topic": f"Shop.Heard{ESCAPE}", "queueaddress": '"public"."Sales"'}
    queues.run(postgresql().subscription.subscribe(table=Address("public", "SubscriptionRouting")), about)
    headers = json.dumps({"NServiceBus.MessageId": "m-1", "NServiceBus.EnclosedMessageTypes": f"Shop.Try{ESCAPE}"})
    queues.run(
        postgresql().queue.send(table=QUEUE), {"id": uuid4(), "ttbr_ms": None, "headers": headers, "body": b"{}"}
    )
    queues.run(
        "update messages.message_archive set exception_type = %(e)s, message_type = %(e)s, fingerprint = null"
        " where state = 'dead'",
        {"e": f"Shop.Broke{ESCAPE}"},
    )
    while fingerprints.catch_up(queues):
        pass
    for argv in (("subscription", "list"), ("waiting", "list", "Billing"), ("failure", "list"), ("dead", "list")):
        code, said = run(*argv)
        assert code == 0, said
        assert "owned" in said, argv
        assert not {"\x1b", "\x07", "\u202e"} & set(said), argv
        assert "\nRow" not in said, argv


NO_TEXT = "caf\udce9"


@pytest.mark.parametrize(
    "argv",
    [
        ("waiting", "send", "Billing", "--type", NO_TEXT, "--body", "/dev/null"),
        ("waiting", "send", "Billing", "--type", "Shop.Try", "--header", f"Shop.Who: {NO_TEXT}", "--body", "/dev/null"),
        ("waiting", "list", NO_TEXT),
        ("failure", "assign", "0" * 16, "--note", NO_TEXT),
        ("failure", "assign", NO_TEXT, "--note", "n"),
        ("retry_rule", "add", "--type", NO_TEXT, "--to", "Sales"),
        ("retry_rule", "add", "--type", "Shop.Old*", "--to", "Sales", "--reason", NO_TEXT),
        ("subscription", "end", NO_TEXT, "Shop.Heard", "--yes"),
        ("dead", "edit", "1", "--header", "Shop.Who", NO_TEXT, "--reason", "r"),
        ("failure", "acknowledge", "0" * 16, "--for", "999999999w"),
        ("failure", "acknowledge", "0" * 16, "--until-dead", str(10**30)),
        ("failure", "assign", "a\0b", "--note", "n"),
        ("waiting", "list", "a\0b"),
        ("waiting", "send", "Billing", "--type", "a\0b", "--body", "/dev/null"),
        ("retry_rule", "add", "--type", "Shop.Old*", "--to", "Sales", "--reason", "a\0b"),
        ("retry_rule", "remove", str(10**30)),
        ("lease", "release", str(10**30), "--yes"),
        ("lease", "end", "1", "--reason", NO_TEXT, "--yes"),
        ("lease", "publish", NO_TEXT),
        ("lease", "publish", "a\0b"),
        ("lease", "list", "--limit", str(10**30)),
        ("retry_rule", "add-lease", "--type", NO_TEXT),
        ("retry_rule", "add-lease", "--type", "a\0b"),
        ("retry_rule", "add-lease", "--times", str(10**30)),
        ("retry_rule", "add-lease", "--reason", "a\0b"),
        ("retry_rule", "remove-lease", str(10**30)),
        ("subscription", "again", str(10**30)),
        ("subscription", "end", "a\0b", "a\0b", "--yes"),
        ("dead", "edit", str(10**30), "--reason", "r"),
        ("dead", "copy", str(10**30)),
        ("waiting", "list", "Billing", "--limit", str(10**30)),
    ],
    ids=repr,
)
def test_invalid_arguments_exit_with_an_error(queues: Connection, argv: tuple[str, ...]) -> None:
    dead(1, state="dead", queue=BILLING, kind="transport")
    assert run(*argv)[0] in (2, 5)


def test_a_dead_message_without_a_body_gets_one(queues: Connection, tmp_path: Path) -> None:
    [one] = dead(1, state="dead", queue=BILLING, kind="transport")
    queues.run("update messages.message_archive set body = null where id = %(id)s", {"id": one.id})
    body = tmp_path / "body"
    body.write_bytes(b"{}")
    code, said = run("dead", "edit", str(one.id), "--body", str(body), "--reason", "r")
    assert code == 0, said
