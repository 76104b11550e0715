-- name: waiting
-- A row as stored, read without a lock; whether it has a body, which stays in the database.
select headers, body is not null as has_body from {table} where id = %(row_id)s::uuid

-- name: from_queue
-- The row that is copied stays unchanged. New row id, no expiry.
insert into {target} (id, expires, headers, body)
select gen_random_uuid(), null, %(headers)s, q.body from {table} q where q.id = %(row_id)s::uuid and q.body is not null

-- name: from_archive
-- Likewise an archived message.
insert into {target} (id, expires, headers, body)
select gen_random_uuid(), null, %(headers)s, a.body from messages.message_archive a where a.id = %(id)s and a.body is not null
