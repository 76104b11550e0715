-- first: A statement begins a transaction: what follows one that the server ended is no commit of its own. A failure undoes its statement.
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
set lock_timeout 25000

-- looks: Where a look and a receiver wait for each other, the look gives way.
set deadlock_priority low

-- read_committed: As receives need it: others' locks can be read past at this level alone.
set transaction isolation level read committed

-- repeatable_read: Of an outbox.
set transaction isolation level repeatable read

-- serializable: Of an outbox.
set transaction isolation level serializable

-- snapshot: Of an outbox, where the database allows it (ALLOW_SNAPSHOT_ISOLATION).
set transaction isolation level snapshot

-- guard: Which transaction is under way; the one that begins where there is none yet.
if @@trancount = 0 begin transaction;
select current_transaction_id() as id

-- commit: Of all that was begun; nothing where nothing was.
while @@trancount > 0 commit transaction

-- commit_guarded: That transaction and no other: what was written after somebody's own end is undone by the caller.
if @@trancount = 0 or current_transaction_id() <> 4711
    throw 51000, N'the transaction that was begun is over', 1;
while @@trancount > 0 commit transaction

-- rollback: Whoever began it.
if @@trancount > 0 rollback transaction

-- savepoint: In a transaction: the first statement of a handler may be one.
if @@trancount = 0 begin transaction;
save transaction [pgqueue_1]

-- undo_savepoint: It fails where the server has undone all of the transaction.
rollback transaction [pgqueue_1]
