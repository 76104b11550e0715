-- name: create
-- As the engine creates it. Safe to run twice, and on a table that the original's script created.
{outbox:create};

{part:indexes}

-- name: indexes
-- By prepared statements: MySQL has no "if not exists" for an index. Its index names are per table.
set @ddl = if(exists (
    select 1 from information_schema.statistics
    where table_schema = {schema_text} and table_name = {name_text} and column_name = 'DispatchedAt' and seq_in_index = 1
), 'do 0', {statement_text:index_dispatched_at});
prepare outbox_ddl from @ddl;
execute outbox_ddl;
set @ddl = if(exists (
    select 1 from information_schema.statistics
    where table_schema = {schema_text} and table_name = {name_text} and column_name = 'Dispatched' and seq_in_index = 1
), 'do 0', {statement_text:index_dispatched});
prepare outbox_ddl from @ddl;
execute outbox_ddl;
deallocate prepare outbox_ddl;

-- name: index_dispatched_at
-- Used by clean-up.
create index Index_DispatchedAt on {table} (DispatchedAt)

-- name: index_dispatched
-- Finds the undispatched records.
create index Index_Dispatched on {table} (Dispatched)

-- name: created_at
-- Existing records get the time of the migration.
alter table {table} add column CreatedAt timestamp(6) null default current_timestamp(6)

-- name: migrate
-- Adds what the original's table lacks. Gives up if another session holds the table for more than five seconds.
set session lock_wait_timeout = 5;
set @ddl = if(exists (
    select 1 from information_schema.columns
    where table_schema = {schema_text} and table_name = {name_text} and column_name = 'CreatedAt'
), 'do 0', {statement_text:created_at});
prepare outbox_ddl from @ddl;
execute outbox_ddl;

{part:indexes}

-- name: cleanup
-- An event, each minute; the server's event_scheduler must be ON. A run longer than a minute keeps the next one out.
drop event if exists {qualified:_cleanup};
delimiter //
create event {qualified:_cleanup} on schedule every 1 minute do
begin
    if get_lock(concat('outbox ', sha1(concat({schema_text}, '.', {name_text}))), 0) then
        repeat
            {part:purge};
        until row_count() = 0 end repeat;
        do release_lock(concat('outbox ', sha1(concat({schema_text}, '.', {name_text}))));
    end if;
end //
delimiter ;

-- name: purge
-- One transaction a batch. A delete cannot skip locked rows, so a select does first. The sum avoids the wider index.
delete outbox
from (
    select MessageId from {table}
    where DispatchedAt < utc_timestamp() - interval {keep_days} day and Dispatched + 0 = 1
    order by DispatchedAt limit 4000 for update skip locked
) as due
straight_join {table} as outbox on outbox.MessageId = due.MessageId

-- name: decisions
-- For an outbox with other databases: which of its transactions over several databases commit. Safe to run twice.
{decision:create};
