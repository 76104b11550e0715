-- name: take
-- Exactly this row, if nobody has it in hand: a locked one is skipped, so the act never waits for a handler that may not end.
delete from {table}
where id = (select id from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update skip locked)
returning id::text, seq, coalesce(expires <= now() at time zone 'utc', false) as expired, headers, body

-- name: is_there
-- Why nothing was taken: a row that is in hand can still be seen.
select exists (select from {table} where id = %(id)s::uuid)
