"""An archive of many dead messages in many groups, filled in minutes: indexes are built afterwards."""

from pgqueue_admin.archive import failure_tallies
from pgqueue_admin.dialects import Connection

BATCH = 500_000  # rows per statement
RARE = 7  # number of messages with rare names
# Of ten messages six are dead, two discarded and two succeeded. Every name is one of a few; the oldest messages have
# names of their own, which a search from the newest finds last.
_FILL = """
insert into messages.message_archive (
    created_at, message, result, handled_by, kind, queue, message_id, message_type, headers, body, exception_type,
    exception_message, stack_trace, target_schema, target_table, failed_queue, endpoint, machine, attempts, sent_at,
    died_at, fingerprint, resolution)
select now(), '{}', case when n %% 10 < 8 then 'failed' else 'success' end::public.message_status, 'bench', 'transport',
    concat('"public"."Q', n %% 200, '"'), concat('m-', n),
    case when n <= %(rare)s then 'Bench.Rare' else concat('Bench.Type', n %% 300) end,
    concat('{"NServiceBus.MessageId":"m-', n, '","NServiceBus.ConversationId":"', md5(n::text),
        '","NServiceBus.EnclosedMessageTypes":"Bench.Type', n %% 300,
        '","NServiceBus.ContentType":"application\\/json","NServiceBus.TimeSent":"2026-11-20 12:00:00:000000 Z"}'),
    convert_to(concat('{"OrderId":', n, ',"Note":"', repeat('x', 150), '"}'), 'UTF8'),
    case when n %% 10 >= 8 then null when n <= %(rare)s then 'Bench.RareError'
        else concat('Bench.Error', n %% %(groups)s) end,
    case when n %% 10 < 8 then concat('it failed, order ', n) end,
    case when n %% 10 < 8 then '   at Bench.Work.Do()' end, 'public', concat('Q', n %% 200),
    concat('"public"."Q', n %% 200, '"'),
    case when n <= %(rare)s then 'rare-endpoint' else concat('E', n %% 50) end,
    case when n <= %(rare)s then 'rare-host' else concat('host-', n %% 20) end,
    case when n <= %(rare)s then 99 else 6 end,
    now() - (%(rows)s - n) * interval '1 s' - interval '5 s', now() - (%(rows)s - n) * interval '1 s',
    case when n %% 10 < 8 then lpad(to_hex(n %% %(groups)s), 16, '0') end,
    case when n %% 10 in (6, 7) then 'discarded' end
from generate_series(%(first)s, %(last)s) n
"""
_INDEXES = """
select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
where indrelid = 'messages.message_archive'::regclass and not indisprimary
"""


def fill(connection: Connection, rows: int, groups: int) -> None:
    """Fill with one death per second, the last just now. ``groups``: number of fingerprints of failed messages."""
    connection.run("set synchronous_commit = off")
    connection.run("set maintenance_work_mem = '512MB'")
    indexes = connection.all(_INDEXES)
    connection.run("alter table messages.message_archive disable trigger user")
    for each in indexes:
        connection.run(f"drop index {each.name}")
    for first in range(1, rows + 1, BATCH):
        about = {"rows": rows, "groups": groups, "rare": RARE, "first": first, "last": min(rows, first + BATCH - 1)}
        connection.run(_FILL, about)
    for each in indexes:
        connection.run(each.definition)
    connection.run("alter table messages.message_archive enable trigger user")
    connection.run("vacuum analyze messages.message_archive")
    failure_tallies.recount(connection)
    while failure_tallies.fold(connection):
        connection.run("vacuum analyze messages.failure_tally, messages.failure_change")


def sizes(connection: Connection) -> dict[str, float]:
    """The size of each index, in MB."""
    found = connection.all(
        "select indexrelid::regclass::text as name, pg_relation_size(indexrelid) as bytes from pg_index"
        " where indrelid = 'messages.message_archive'::regclass"
    )
    return {each.name.removeprefix("messages."): each.bytes / 1e6 for each in found}
