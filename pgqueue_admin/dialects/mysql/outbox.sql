-- name: create
-- The original's table and CreatedAt, when a record was written. Ids compare byte by byte: two that differ by case are two.
create table if not exists {table} (
    MessageId varchar(200) character set utf8mb4 collate utf8mb4_bin not null primary key,
    Dispatched bit(1) not null default b'0',
    DispatchedAt datetime null,
    PersistenceVersion varchar(23) not null,
    Operations json not null,
    CreatedAt timestamp(6) null default current_timestamp(6),
    index Index_DispatchedAt (DispatchedAt),
    index Index_Dispatched (Dispatched)
) default character set ascii

-- name: create_index
-- MySQL's index names are per table, so the original's names fit every table.
create index {index} on {table} ({column})

-- name: add_key
-- One record per message.
alter table {table} add primary key (MessageId)

-- name: indexes
-- The leading columns of the table's indexes.
select distinct column_name as name from information_schema.statistics
where table_schema = coalesce(nullif(%(schema)s, ''), database()) and table_name = %(name)s and seq_in_index = 1

-- name: columns
-- The table's columns, and whether each alone is a unique key.
select c.column_name as name, c.column_type as type, exists (
    select 1 from information_schema.statistics s
    where s.table_schema = c.table_schema and s.table_name = c.table_name
    group by s.index_name
    having count(*) = 1 and max(s.column_name = c.column_name) = 1 and max(s.non_unique) = 0
) as is_unique
from information_schema.columns c
where c.table_schema = coalesce(nullif(%(schema)s, ''), database()) and c.table_name = %(name)s

-- name: find
-- The first query for each message. The original's collation ignores case, so the bytes are compared too.
select MessageId as id, Dispatched + 0 as dispatched, Operations as operations
from {table} where MessageId = %(id)s
  and cast(convert(MessageId using utf8mb4) as binary) = cast(convert(%(id)s using utf8mb4) as binary)

-- name: store
-- Waits for an uncommitted insert of the same id; wait and wait_as_before set the timeout around it.
insert into {table} (MessageId, Operations, PersistenceVersion) values (%(id)s, %(operations)s, %(version)s)

-- name: wait
-- The unit is whole seconds: MySQL has none shorter.
set @outbox_wait = @@session.innodb_lock_wait_timeout, session innodb_lock_wait_timeout = %(wait)s

-- name: wait_as_before
-- Restores the lock timeout for the handlers' statements.
set session innodb_lock_wait_timeout = @outbox_wait

-- name: complete
-- Pessimistic: the record exists already, and no other session can have it.
update {table} set Operations = %(operations)s where MessageId = %(id)s

-- name: mark
-- Once: if the relay has marked it, Operations becomes null, which the column refuses. Assignments run left to right.
update {table}
set Operations = if(Dispatched + 0 = 1, null, '[]'), DispatchedAt = utc_timestamp(), Dispatched = 1
where MessageId = %(id)s

-- name: work
-- One check a minute, by both indexes. The lock belongs to the session: a killed leader loses it.
select get_lock(concat('outbox ', sha1(concat(coalesce(database(), ''), ' ', %(table)s))), 0) as leads,
    exists (select 1 from {table} where DispatchedAt < utc_timestamp() - interval %(keep)s microsecond and Dispatched = 1)
        as to_purge,
    exists (select 1 from {table} where Dispatched = 0 and {is_over}) as to_relay

-- name: is_over
-- By CreatedAt, in tables of ours. A time in the future is a wrong clock's: the record would wait for it.
CreatedAt not between now(6) - interval %(grace)s microsecond and now(6) + interval %(grace)s microsecond

-- name: is_undated
-- The original's table has no creation time: the caller remembers when it first saw a record.
%(grace)s is not null

-- name: dispatched
-- A batch, oldest first, without what another cleaner has locked. The sum avoids the index that half the table is under.
select MessageId as id from {table}
where DispatchedAt < utc_timestamp() - interval %(keep)s microsecond and Dispatched + 0 = 1
order by DispatchedAt limit {most} for update skip locked

-- name: purge
-- Only rows that dispatched has locked: a delete cannot skip locked rows.
delete from {table} where MessageId in %(ids)s

-- name: pending
-- Records that a crash left between commit and dispatch. A worker about to dispatch one has it locked, or waits for us.
select MessageId as id, Dispatched + 0 as dispatched, Operations as operations
from {table} where Dispatched = 0 and {is_over} and {is_left} limit {most} for update skip locked

-- name: is_not_among
-- Leaves out records already seen in this round.
MessageId not in %(without)s

-- name: is_any
-- Nothing was seen yet, and SQL has no empty list.
%(without)s is null

-- name: tables
-- Outbox tables of the session's database, by their columns, whatever their names. No views: a view may run any code.
select t.table_schema as `schema`, t.table_name as `table`, t.table_rows as `rows`,
    exists (
        select 1 from information_schema.columns c
        where c.table_schema = t.table_schema and c.table_name = t.table_name
          and c.column_name = 'CreatedAt' and c.column_type like 'timestamp%%') as says_when,
    (
        select group_concat(distinct s.column_name) from information_schema.statistics s
        where s.table_schema = t.table_schema and s.table_name = t.table_name and s.seq_in_index = 1) as indexed
from information_schema.tables t
where t.table_schema = database() and t.table_type = 'BASE TABLE' and 5 = (
    select count(*) from information_schema.columns c
    where c.table_schema = t.table_schema and c.table_name = t.table_name and (
        (c.column_name = 'MessageId' and c.column_type = 'varchar(200)')
        or (c.column_name = 'Dispatched' and c.column_type = 'bit(1)')
        or (c.column_name = 'DispatchedAt' and c.column_type in ('datetime', 'datetime(6)'))
        or (c.column_name = 'PersistenceVersion' and c.column_type = 'varchar(23)')
        or (c.column_name = 'Operations' and c.column_type in ('json', 'longtext'))))
order by t.table_name limit {most}

-- name: count_pending
-- Counted to a limit, by the index on Dispatched.
select count(*) as pending from (select 1 from {table} where Dispatched = 0 limit {most}) as some

-- name: count_dispatched
-- Counted to a limit, by the index on DispatchedAt.
select count(*) as dispatched from (
    select 1 from {table} where DispatchedAt is not null order by DispatchedAt desc limit {most}) as some

-- name: oldest_pending
-- Of a limited number of pending records; only in tables of ours, which have CreatedAt.
select min(CreatedAt) as since from (select CreatedAt from {table} where Dispatched = 0 limit {most}) as some

-- name: oldest_kept
-- How far clean-up has got, by the index on DispatchedAt; run only if that index exists.
select DispatchedAt as at from {table} where DispatchedAt is not null order by DispatchedAt limit 1

-- name: list_pending
-- Some pending records without their payloads. A payload that is no array has no number of operations.
select MessageId as id, {created_at} as created_at, octet_length(Operations) as size,
    case when json_valid(Operations) and json_type(Operations) = 'ARRAY' then json_length(Operations) end as operations
from {table} where Dispatched = 0 and MessageId > %(after)s order by MessageId limit {most}

-- name: pending_ids
-- Ids of pending records, a page at a time; locks nothing, reads no payload.
select MessageId as id from {table} where Dispatched = 0 and MessageId > %(after)s order by MessageId limit {most}

-- name: still_pending
-- Which of these are still pending; locks nothing, reads no payload.
select MessageId as id from {table} where MessageId in %(ids)s and Dispatched = 0

-- name: created_at
-- Tables of ours know since when a record waits.
CreatedAt

-- name: unknown_at
-- The original's table does not.
null

-- name: record
-- One record, cut to what a page shows.
select MessageId as id, Dispatched + 0 as dispatched, DispatchedAt as dispatched_at, PersistenceVersion as version,
    {created_at} as created_at, octet_length(Operations) as size, left(Operations, {most}) as operations
from {table} where MessageId = %(id)s
