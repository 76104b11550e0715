-- What waits, and how messages ended: psql postgresql://user@host/database -f examples/lease/look.sql
select id, message, attempts, lock_expires_at from messages.message order by id;
select message_id, message, result, handled_by, details from messages.message_archive order by message_id;
