-- name: session
-- What a handler does after it has left the transaction is refused as well, and a server notices soon that a killed process is gone.
select pg_catalog.set_config('default_transaction_read_only', 'on', false),
    pg_catalog.set_config('client_connection_check_interval', '1s', false),
    pg_catalog.set_config('statement_timeout', %(limit)s, false),
    pg_catalog.set_config('idle_in_transaction_session_timeout', %(limit)s, false)

-- name: may_write
-- The first of the transaction, which alone may do so.
set transaction read write

-- name: barrier
-- A commit checks what was deferred, and fails here, whoever asks for it and by whatever way. Neither can it be prepared: it has used a temporary table.
create temporary table pgqueue_trial_of_a_handler (n int unique deferrable initially deferred) on commit drop

-- name: close_barrier
-- Twice the same.
insert into pg_temp.pgqueue_trial_of_a_handler (n) values (1), (1)

-- name: mark
-- Behind the barrier, before the handler.
savepoint pgqueue_trial_of_a_handler

-- name: back_to_mark
-- Also after a statement failed; in any other transaction there is no such mark.
rollback to savepoint pgqueue_trial_of_a_handler

-- name: open_barrier
-- Before the deferred constraints of others are checked. Nothing commits after it.
delete from pg_temp.pgqueue_trial_of_a_handler

-- name: check_deferred
-- Those that a commit would check.
set constraints all immediate

-- name: transaction
-- Which one it is; none that writes: null.
select pg_catalog.pg_current_xact_id_if_assigned()::text
