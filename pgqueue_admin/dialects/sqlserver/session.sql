-- name: first
-- A statement begins a transaction: after one that the server ended, the next statement does not commit by itself.
-- A failure undoes its statement. A table with a filtered index or a computed column refuses writes (1934) unless all
-- of these are set; the driver's login sets only some.
set quoted_identifier on;
set ansi_nulls on;
set ansi_padding on;
set ansi_warnings on;
set arithabort on;
set concat_null_yields_null on;
set numeric_roundabort off;
set implicit_transactions on;
set xact_abort off;
set nocount off;
set language us_english;
set lock_timeout {lock_ms}

-- name: looks
-- In a deadlock between a read and a receiver, the read is the victim.
set deadlock_priority low

-- name: read_committed
-- For receives, which skip rows that others have locked.
set transaction isolation level read committed

-- name: repeatable_read
-- For an outbox.
set transaction isolation level repeatable read

-- name: serializable
-- For an outbox.
set transaction isolation level serializable

-- name: snapshot
-- For an outbox, where the database allows it (ALLOW_SNAPSHOT_ISOLATION).
set transaction isolation level snapshot

-- name: guard
-- The id of the transaction in progress; begins one if there is none.
if @@trancount = 0 begin transaction;
select current_transaction_id() as id

-- name: commit
-- Commits all levels that were begun; does nothing outside a transaction.
while @@trancount > 0 commit transaction

-- name: commit_guarded
-- That transaction and no other: if somebody else ended it, the caller undoes what was written since.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
while @@trancount > 0 commit transaction

-- name: rollback
-- No matter who began the transaction.
if @@trancount > 0 rollback transaction

-- name: guard_batch
-- As guard, and keeps how the transaction ended: a temporary table is rolled back with it.
if @@trancount = 0 begin transaction;
if object_id(N'tempdb..#pgqueue_batch') is null create table #pgqueue_batch (Id bigint not null);
delete from #pgqueue_batch;
insert into #pgqueue_batch (Id) values (current_transaction_id());
select current_transaction_id() as id

-- name: batch_is_committed
-- If the transaction that created the table was rolled back, the table is gone, too.
if object_id(N'tempdb..#pgqueue_batch') is null select 0 as found
else select count(*) as found from #pgqueue_batch where Id = {id}

-- name: savepoint
-- In the guarded transaction only: an error may have undone it, and the next statement begun another.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
save transaction {name}

-- name: release_savepoint
-- SQL Server releases no savepoints, it reuses their names. The guarded transaction must still be there.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1

-- name: undo_savepoint
-- Fails where the server has undone the whole transaction.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
rollback transaction {name}
