-- create: The original's table, a heap, and CreatedAt, when a record was written. Ids that differ by case are two.
create table [dbo].[Sales_OutboxData] (
    MessageId nvarchar(200) collate Latin1_General_BIN2 not null,
    Dispatched bit not null default 0,
    DispatchedAt datetime null,
    PersistenceVersion varchar(23) not null,
    Operations nvarchar(max) not null,
    CreatedAt datetime2 null default sysutcdatetime(),
    primary key nonclustered (MessageId)
)

-- add_key: One record per message.
alter table [dbo].[Sales_OutboxData] add primary key nonclustered (MessageId)

-- create_index: Filtered to the records that it finds. Index names are per table in SQL Server.
create index [Index_Dispatched] on [dbo].[Sales_OutboxData] ([Dispatched]) where Dispatched = 0

-- indexes: The leading columns of the table's indexes.
select distinct c.name as name
from sys.indexes i
join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id and k.key_ordinal = 1
join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id
where i.object_id = object_id(%(table)s) and i.is_disabled = 0

-- without_snapshots: Which of the session's and the outbox's databases refuse snapshot reads; also while that is being switched.
select d.name as name from sys.databases d
where d.name in (db_name(), %(catalog)s) and d.snapshot_isolation_state <> 1
order by d.name

-- columns: The table's columns, and whether each alone is a unique key.
select c.name as name,
    concat(t.name, case
        when t.name = N'nvarchar' and c.max_length = -1 then N'(max)'
        when t.name = N'nvarchar' then concat(N'(', c.max_length / 2, N')')
        when t.name = N'varchar' then concat(N'(', c.max_length, N')')
        else N'' end) as type,
    case when exists (
        select 1 from sys.indexes i
        join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id and k.key_ordinal > 0
        where i.object_id = c.object_id and i.is_unique = 1 and i.has_filter = 0 and i.is_disabled = 0
        group by i.index_id
        having count(*) = 1 and max(k.column_id) = c.column_id
    ) then 1 else 0 end as is_unique
from sys.columns c
join sys.types t on t.user_type_id = c.user_type_id
where c.object_id = object_id(%(table)s)

-- find: The first query for each message. The cast is one letter longer than the key, so that no longer id is cut to match.
-- The bytes decide where the key takes two ids for one.
select MessageId as id, Dispatched as dispatched, Operations as operations
from [dbo].[Sales_OutboxData]
where MessageId = cast(%(id)s as nvarchar(201))
  and cast(MessageId as varbinary(402)) = cast(cast(%(id)s as nvarchar(201)) as varbinary(402))

-- store: Waits a while for an uncommitted insert of the same id. The lock timeout reverts at the statement's end.
set lock_timeout 10000;
insert into [dbo].[Sales_OutboxData] (MessageId, Operations, PersistenceVersion) values (%(id)s, %(operations)s, %(version)s)

-- complete: Pessimistic: the record exists already, and no other session can have it.
update [dbo].[Sales_OutboxData] set Operations = %(operations)s where MessageId = cast(%(id)s as nvarchar(201))

-- mark: Once: if the relay has marked the record meanwhile, it fails, and what this transaction sends is not sent.
update [dbo].[Sales_OutboxData] set Dispatched = 1, DispatchedAt = getutcdate(), Operations = N'[]'
where MessageId = cast(%(id)s as nvarchar(201)) and Dispatched = 0;
if @@rowcount = 0
    throw 51001, N'the record was marked as dispatched already', 1

-- work: One check a minute, by both indexes, without records that are being written.
-- The lock belongs to the session: a killed leader loses it.
declare @leads int = 0;
if applock_mode(N'public', cast(%(resource)s as nvarchar(255)), N'Session') <> N'Exclusive'
    exec @leads = sys.sp_getapplock @Resource = %(resource)s, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 0;
select case when @leads >= 0 then 1 else 0 end as leads,
    case when exists (
        select 1 from [dbo].[Sales_OutboxData] with (readpast, readcommittedlock)
        where Dispatched = 1 and DispatchedAt < dateadd(day, -%(keep_days)s, dateadd(second, -%(keep)s, getutcdate()))
    ) then 1 else 0 end as to_purge,
    case when exists (
        select 1 from [dbo].[Sales_OutboxData] with (readpast, readcommittedlock) where Dispatched = 0 and CreatedAt not between dateadd(day, -%(grace_days)s,
    dateadd(microsecond, -%(grace_rest)s, dateadd(second, -%(grace)s, sysutcdatetime())))
  and dateadd(day, %(grace_days)s,
    dateadd(microsecond, %(grace_rest)s, dateadd(second, %(grace)s, sysutcdatetime())))
    ) then 1 else 0 end as to_relay

-- is_over: By CreatedAt, in tables of ours. A time in the future is a wrong clock's: the record would wait for it.
CreatedAt not between dateadd(day, -%(grace_days)s,
    dateadd(microsecond, -%(grace_rest)s, dateadd(second, -%(grace)s, sysutcdatetime())))
  and dateadd(day, %(grace_days)s,
    dateadd(microsecond, %(grace_rest)s, dateadd(second, %(grace)s, sysutcdatetime())))

-- is_undated: The original's table has no creation time: the caller remembers when it first saw a record.
%(grace)s is not null

-- purge: As the original's own clean-up, without what another cleaner has locked.
delete top (10) from [dbo].[Sales_OutboxData] with (rowlock, readpast)
where Dispatched = 1 and DispatchedAt < dateadd(day, -%(keep_days)s, dateadd(second, -%(keep)s, getutcdate()))
option (maxdop 1)

-- pending: Records that a crash left between commit and dispatch. A worker about to dispatch one has it locked, or waits for us.
-- Ids come as JSON: a statement takes no more than 2,100 parameters.
select top (10) MessageId as id, Dispatched as dispatched, Operations as operations
from [dbo].[Sales_OutboxData] with (updlock, readpast, rowlock)
where Dispatched = 0 and CreatedAt not between dateadd(day, -%(grace_days)s,
    dateadd(microsecond, -%(grace_rest)s, dateadd(second, -%(grace)s, sysutcdatetime())))
  and dateadd(day, %(grace_days)s,
    dateadd(microsecond, %(grace_rest)s, dateadd(second, %(grace)s, sysutcdatetime())))
  and MessageId collate Latin1_General_BIN2 not in (select seen.value from openjson(%(without)s) as seen)
