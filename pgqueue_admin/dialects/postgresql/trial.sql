-- name: session
-- What a handler does after leaving the transaction is refused as well, and a server soon notices a killed process.
select pg_catalog.set_config('default_transaction_read_only', 'on', false),
    pg_catalog.set_config('client_connection_check_interval', '1s', false),
    pg_catalog.set_config('statement_timeout', %(limit)s, false),
    pg_catalog.set_config('idle_in_transaction_session_timeout', %(limit)s, false)

-- name: may_write
-- The first of the transaction, the only one that may write.
set transaction read write

-- name: barrier
-- A commit checks deferred constraints, and fails here, whatever issues it. Nor can it be prepared: it used a temporary table.
create temporary table pgqueue_trial_of_a_handler (n int unique deferrable initially deferred) on commit drop

-- name: close_barrier
-- The same value twice.
insert into pg_temp.pgqueue_trial_of_a_handler (n) values (1), (1)

-- name: mark
-- After the barrier, before the handler.
savepoint pgqueue_trial_of_a_handler

-- name: back_to_mark
-- Also after a failed statement; no other transaction has this savepoint.
rollback to savepoint pgqueue_trial_of_a_handler

-- name: open_barrier
-- Before the deferred constraints of others are checked. Nothing commits after it.
delete from pg_temp.pgqueue_trial_of_a_handler

-- name: check_deferred
-- Those that a commit would check.
set constraints all immediate

-- name: transaction
-- The transaction's id; null if it has written nothing.
select pg_catalog.pg_current_xact_id_if_assigned()::text
