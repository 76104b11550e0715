-- name: first
-- A statement begins a transaction: what follows one that the server ended is no commit of its own. A failure undoes its statement.
-- A table with a filtered index or a computed column takes no write (1934) unless all of these are so, and the driver's login sets
-- but some of them.
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
-- Where a look and a receiver wait for each other, the look gives way.
set deadlock_priority low

-- name: read_committed
-- As receives need it: others' locks can be read past at this level alone.
set transaction isolation level read committed

-- name: repeatable_read
-- Of an outbox.
set transaction isolation level repeatable read

-- name: serializable
-- Of an outbox.
set transaction isolation level serializable

-- name: snapshot
-- Of an outbox, where the database allows it (ALLOW_SNAPSHOT_ISOLATION).
set transaction isolation level snapshot

-- name: guard
-- Which transaction is under way; the one that begins where there is none yet.
if @@trancount = 0 begin transaction;
select current_transaction_id() as id

-- name: commit
-- Of all that was begun; nothing where nothing was.
while @@trancount > 0 commit transaction

-- name: commit_guarded
-- That transaction and no other: what was written after somebody's own end is undone by the caller.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
while @@trancount > 0 commit transaction

-- name: rollback
-- Whoever began it.
if @@trancount > 0 rollback transaction

-- name: guard_batch
-- As guard, and what tells afterwards how the transaction ended: a temporary table is rolled back with it.
if @@trancount = 0 begin transaction;
if object_id(N'tempdb..#pgqueue_batch') is null create table #pgqueue_batch (Id bigint not null);
delete from #pgqueue_batch;
insert into #pgqueue_batch (Id) values (current_transaction_id());
select current_transaction_id() as id

-- name: batch_is_committed
-- Where the table came with a transaction that was rolled back it is gone, too.
if object_id(N'tempdb..#pgqueue_batch') is null select 0 as found
else select count(*) as found from #pgqueue_batch where Id = {id}

-- name: savepoint
-- In the guarded transaction and no other: an error may have undone that one, and begun another with whatever came next.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
save transaction {name}

-- name: release_savepoint
-- There is none to be released, as its name is taken again: what it stands in must be there still.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1

-- name: undo_savepoint
-- It fails where the server has undone all of the transaction.
if @@trancount = 0 or current_transaction_id() <> {id}
    throw 51000, N'the transaction that was begun is over', 1;
rollback transaction {name}
