-- name: sent
-- The queue and row as which each archived message was sent, by the retry that it stands for now.
select a.id, a.kind, a.queue, a.headers, a.retry_token, i.operation, i.target, i.sent_as
from messages.message_archive a join messages.operation_item i on i.operation = a.operation and i.archive_id = a.id
where a.state = 'retried' and i.outcome = 'done' and i.sent_as is not null and {which}
order by a.id

-- name: of_ids
-- Part of sent: these archived messages.
a.id = any (%(ids)s::integer[])

-- name: of_rows
-- Part of sent: those that wait as these rows of one queue. By message id, which has an index, and row id, which is random.
a.message_id = any (%(message_ids)s::text[]) and i.target = %(target)s and i.sent_as = any (%(row_ids)s::text[])

-- name: waiting
-- Rows that nobody has locked, held until the transaction ends; locked ones are skipped, so no receiver waits and none
-- is waited for. Bodies are compared in the database.
select sent.archive_id, q.tableoid::bigint as part, q.ctid::text as place, q.headers, q.body is not distinct from a.body as same_body
from rows from (unnest(%(ids)s::integer[]), unnest(%(row_ids)s::uuid[])) as sent (archive_id, row_id)
join {table} q on q.id = sent.row_id
join messages.message_archive a on a.id = sent.archive_id
for update of q skip locked

-- name: waiting_lease
-- Likewise lease messages that nobody has locked; each names the archived message it was retried from.
select a.id as archive_id
from messages.message m join messages.message_archive a on a.id = m.retried_from and a.retried_as = m.id
where a.id = any (%(ids)s::integer[]) and m.lock_expires_at is null and m.message = a.message
for update of m skip locked

-- name: take_back
-- Deletes the held rows, by their places.
delete from {table} q
using rows from (unnest(%(parts)s::bigint[]), unnest(%(places)s::text[])) as held (part, place)
where q.ctid = held.place::tid and q.tableoid = held.part::oid

-- name: take_back_lease
-- Likewise.
delete from messages.message m using messages.message_archive a
where a.id = any (%(ids)s::integer[]) and m.id = a.retried_as and m.retried_from = a.id

-- name: back
-- Dead again as before the retry, or discarded; the token of that retry becomes invalid.
update messages.message_archive
set resolution = %(resolution)s, resolved_by = %(resolved_by)s, ended_at = null, operation = %(operation)s, retry_token = null,
    resolved_at = case when %(resolved_by)s::text is not null then clock_timestamp() end
where id = any (%(ids)s::integer[]) and state = 'retried'

-- name: of_crossing
-- As sent, for archived messages that were taken out of another database since.
select a.id, a.kind, a.queue, i.operation, i.target
from messages.message_archive a join messages.operation_item i on i.operation = a.operation and i.archive_id = a.id
where a.id = any (%(ids)s::integer[]) and i.sent_as is not null
order by a.id

-- name: back_from_there
-- As back, in any state: another row with its message id may have died meanwhile. This one waited there, and is gone.
update messages.message_archive
set resolution = null, resolved_by = null, ended_at = null, operation = %(operation)s, retry_token = null, resolved_at = null
where id = any (%(ids)s::integer[])

-- name: moved_on
-- A retried message waits in another queue from now on: it is looked up there, and its outcome is reported from there.
-- By the row that was sent, or the token in it: anybody may send a message with the same id.
with former as (
    update messages.message_archive a set target_schema = %(schema)s, target_table = %(table)s
    where a.message_id = %(message_id)s and a.state = 'retried' and (a.retry_token = %(token)s::uuid or exists (
        select from messages.operation_item i
        where i.operation = a.operation and i.archive_id = a.id and i.outcome = 'done' and i.target = %(source)s
            and i.sent_as = %(row_id)s))
    returning a.id, a.operation
), sent as (
    update messages.operation_item i set target = %(target)s from former f
    where i.operation = f.operation and i.archive_id = f.id and i.outcome = 'done' and i.target = %(source)s
        and i.sent_as = %(row_id)s
)
insert into messages.archive_event (archive_id, who, verb, operation, target)
select id, %(who)s, %(verb)s, operation, %(target)s from former

-- name: not_sent
-- Corrects the retry's item in the same transaction: in the end it was not sent.
update messages.operation_item i
set outcome = 'skipped', why = %(why)s, previous_actor = %(who)s, previous_at = clock_timestamp(), sent_as = null, left_at = null
from rows from (unnest(%(operations)s::bigint[]), unnest(%(ids)s::integer[])) as sent (operation, archive_id)
where i.operation = sent.operation and i.archive_id = sent.archive_id and i.outcome = 'done'
