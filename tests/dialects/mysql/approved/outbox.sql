-- create: As the original's script makes it, and when each record was written. Ids are compared byte by byte: two that differ by case are two.
create table if not exists `Sales_OutboxData` (
    MessageId varchar(200) character set utf8mb4 collate utf8mb4_bin not null primary key,
    Dispatched bit(1) not null default b'0',
    DispatchedAt datetime null,
    PersistenceVersion varchar(23) not null,
    Operations json not null,
    CreatedAt timestamp(6) null default current_timestamp(6),
    index Index_DispatchedAt (DispatchedAt),
    index Index_Dispatched (Dispatched)
) default character set ascii

-- create_index: An index belongs to its table there: the original's names do.
create index `Index_Dispatched` on `Sales_OutboxData` (`Dispatched`)

-- add_key: One record of a message.
alter table `Sales_OutboxData` add primary key (MessageId)

-- indexes: Which columns lead an index.
select distinct column_name as name from information_schema.statistics
where table_schema = coalesce(nullif(%(schema)s, ''), database()) and table_name = %(name)s and seq_in_index = 1

-- columns: What the table has, and which column alone is a unique key.
select c.column_name as name, c.column_type as type, exists (
    select 1 from information_schema.statistics s
    where s.table_schema = c.table_schema and s.table_name = c.table_name
    group by s.index_name
    having count(*) = 1 and max(s.column_name = c.column_name) = 1 and max(s.non_unique) = 0
) as is_unique
from information_schema.columns c
where c.table_schema = coalesce(nullif(%(schema)s, ''), database()) and c.table_name = %(name)s

-- find: Asked first of each message. The original's table holds two ids that differ by case for one: only the same bytes were handled.
select MessageId as id, Dispatched + 0 as dispatched, Operations as operations
from `Sales_OutboxData` where MessageId = %(id)s
  and cast(convert(MessageId using utf8mb4) as binary) = cast(convert(%(id)s using utf8mb4) as binary)

-- store: Who inserts the same waits for the one before him, for as long as the two statements around it say.
insert into `Sales_OutboxData` (MessageId, Operations, PersistenceVersion) values (%(id)s, %(operations)s, %(version)s)

-- wait: In whole seconds: there is none shorter.
set @outbox_wait = @@session.innodb_lock_wait_timeout, session innodb_lock_wait_timeout = %(wait)s

-- wait_as_before: What handlers ask afterwards waits as it did.
set session innodb_lock_wait_timeout = @outbox_wait

-- complete: Pessimistic: the record is there already, and nobody else can have it.
update `Sales_OutboxData` set Operations = %(operations)s where MessageId = %(id)s

-- mark: Once: a record that the relay marked meanwhile would get no operations at all, which the column refuses. Assigned from left to right.
update `Sales_OutboxData`
set Operations = if(Dispatched + 0 = 1, null, '[]'), DispatchedAt = utc_timestamp(), Dispatched = 1
where MessageId = %(id)s

-- work: One look a minute, by both indexes. The lock is the session's: a leader that is killed leads no more.
select get_lock(concat('outbox ', sha1(concat(coalesce(database(), ''), ' ', %(table)s))), 0) as leads,
    exists (select 1 from `Sales_OutboxData` where DispatchedAt < utc_timestamp() - interval %(keep)s microsecond and Dispatched = 1)
        as to_purge,
    exists (select 1 from `Sales_OutboxData` where Dispatched = 0 and CreatedAt not between now(6) - interval %(grace)s microsecond and now(6) + interval %(grace)s microsecond) as to_relay

-- is_over: By when it was written, where the table is one of ours. What is of the future was written by a clock that was wrong: it would wait for it.
CreatedAt not between now(6) - interval %(grace)s microsecond and now(6) + interval %(grace)s microsecond

-- is_undated: The original's table does not say when a record was written: whoever asks remembers when he saw it first.
%(grace)s is not null

-- dispatched: A batch, oldest first; what another cleaner has locked he deletes. The sum keeps the server off the index that half the table is under.
select MessageId as id from `Sales_OutboxData`
where DispatchedAt < utc_timestamp() - interval %(keep)s microsecond and Dispatched + 0 = 1
order by DispatchedAt limit 10 for update skip locked

-- purge: Those alone: a delete cannot skip what is locked.
delete from `Sales_OutboxData` where MessageId in %(ids)s

-- pending: What a crash left between commit and dispatch; a worker that is about to send it has it locked, or waits for us.
select MessageId as id, Dispatched + 0 as dispatched, Operations as operations
from `Sales_OutboxData` where Dispatched = 0 and CreatedAt not between now(6) - interval %(grace)s microsecond and now(6) + interval %(grace)s microsecond and MessageId not in %(without)s limit 10 for update skip locked

-- is_not_among: Those were seen in this round.
MessageId not in %(without)s

-- is_any: None was seen yet, and a list of none cannot be written.
%(without)s is null

-- tables: Of the session's database, by what they have, whatever they are called; no views, which may run anything.
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
order by t.table_name limit 10

-- count_pending: Counted to a limit, by the index on Dispatched.
select count(*) as pending from (select 1 from `Sales_OutboxData` where Dispatched = 0 limit 10) as some

-- count_dispatched: Counted to a limit, by the index on DispatchedAt.
select count(*) as dispatched from (
    select 1 from `Sales_OutboxData` where DispatchedAt is not null order by DispatchedAt desc limit 10) as some

-- oldest_pending: Of so many that wait, as a table of ours says it.
select min(CreatedAt) as since from (select CreatedAt from `Sales_OutboxData` where Dispatched = 0 limit 10) as some

-- oldest_kept: How far clean-up has come, by the index on DispatchedAt; asked only where there is one.
select DispatchedAt as at from `Sales_OutboxData` where DispatchedAt is not null order by DispatchedAt limit 1

-- list_pending: Some of what waits, without its bodies; a payload that is no array is none.
select MessageId as id, CreatedAt as created_at, octet_length(Operations) as size,
    case when json_valid(Operations) and json_type(Operations) = 'ARRAY' then json_length(Operations) end as operations
from `Sales_OutboxData` where Dispatched = 0 and MessageId > %(after)s order by MessageId limit 10

-- pending_ids: Which wait, a page at a time; nothing is locked, and no payload is read.
select MessageId as id from `Sales_OutboxData` where Dispatched = 0 and MessageId > %(after)s order by MessageId limit 10

-- still_pending: Which of these wait; nothing is locked, and no payload is read.
select MessageId as id from `Sales_OutboxData` where MessageId in %(ids)s and Dispatched = 0

-- created_at: A table of ours says since when a record waits.
CreatedAt

-- unknown_at: The original's does not.
null

-- record: One of them, as far as a page shows it.
select MessageId as id, Dispatched + 0 as dispatched, DispatchedAt as dispatched_at, PersistenceVersion as version,
    CreatedAt as created_at, octet_length(Operations) as size, left(Operations, 10) as operations
from `Sales_OutboxData` where MessageId = %(id)s
