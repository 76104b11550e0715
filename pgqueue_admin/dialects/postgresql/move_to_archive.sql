-- name: take
-- Exactly this row, if nobody has it in hand: a locked one is skipped, so the act never waits for a handler that may not end.
delete from {table}
where id = (select id from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update skip locked)
returning id::text, seq, coalesce(expires <= now() at time zone 'utc', false) as expired, headers, body

-- name: stays
-- Waits for whoever has it in hand, so that the answer is what became of it and not what it was before.
select id from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update

-- name: moved
-- By its event, which was committed with it: the newest, should a row with this id have been moved before.
select max(a.id) from messages.message_archive a join messages.archive_event e on e.archive_id = a.id
where a.row_id = %(id)s::uuid and e.verb = %(verb)s and e.who = %(who)s

-- name: is_there
-- Why nothing was taken: a row that is in hand can still be seen.
select exists (select from {table} where id = %(id)s::uuid)
