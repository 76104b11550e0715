-- name: create
-- As the transport documents it: Recoverable is always 1, CorrelationId and ReplyToAddress stay empty. No key: ids may repeat.
create table {table} (
    Id uniqueidentifier not null,
    CorrelationId varchar(255) null,
    ReplyToAddress varchar(255) null,
    Recoverable bit not null,
    Expires datetime null,
    Headers nvarchar(max) not null,
    Body varbinary(max) null,
    RowVersion bigint identity(1,1) not null
)

-- name: index_rowversion
-- Stores rows in the order in which they are received.
create clustered index Index_RowVersion on {table} (RowVersion)

-- name: index_expires
-- A purge of expired messages reads nothing else.
create nonclustered index Index_Expires on {table} (Expires) include (Id, RowVersion)

-- name: lock
-- The original's installers take it for the same table, until the transaction ends. Below 0 it was not granted.
declare @granted int;
exec @granted = sys.sp_getapplock @Resource = %(resource)s, @LockMode = N'Exclusive', @LockOwner = N'Transaction';
select @granted as granted

-- name: columns
-- The table's columns, and whether each leads an index of all rows, or of those where it is not null.
select c.name as name, t.name as type, c.max_length as length, c.is_identity as is_identity, c.is_nullable as is_nullable,
    case when exists (
        select 1 from {catalog}sys.indexes i
        join {catalog}sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id and k.key_ordinal = 1
        where i.object_id = c.object_id and k.column_id = c.column_id and i.is_disabled = 0
          and (i.has_filter = 0 or i.filter_definition = concat(N'(', quotename(c.name), N' IS NOT NULL)'))
    ) then 1 else 0 end as leads_an_index
from {catalog}sys.columns c
join {catalog}sys.types t on t.user_type_id = c.user_type_id
where c.object_id = object_id(%(table)s)
order by c.column_id

-- name: triggers
-- Enabled triggers.
-- A delete with an output clause is refused where one is on delete (334); with any trigger, due messages cannot be
-- moved into the table (331).
select r.name as name, max(case when e.type_desc = N'DELETE' then 1 else 0 end) as is_of_deletes
from {catalog}sys.triggers r
join {catalog}sys.trigger_events e on e.object_id = r.object_id
where r.parent_id = object_id(%(table)s) and r.is_disabled = 0
group by r.name
order by r.name

-- name: has_recoverable
-- Queried before the first send. A login that may send may see the column.
select case when col_length(%(table)s, N'Recoverable') is null then 0 else 1 end as is_there

-- name: send
-- The server's clock sets the expiry. Days are added apart from the rest: dateadd takes no more milliseconds.
insert into {table} (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select coalesce(cast(%(id)s as uniqueidentifier), newid()), null, null, 1,
    dateadd(millisecond, cast(%(ttbr_ms)s as bigint) %% 86400000, dateadd(day, cast(%(ttbr_ms)s as bigint) / 86400000, getutcdate())),
    %(headers)s, %(body)s

-- name: send_without_recoverable
-- As send, where the Recoverable column was dropped.
insert into {table} (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select coalesce(cast(%(id)s as uniqueidentifier), newid()), null, null,
    dateadd(millisecond, cast(%(ttbr_ms)s as bigint) %% 86400000, dateadd(day, cast(%(ttbr_ms)s as bigint) / 86400000, getutcdate())),
    %(headers)s, %(body)s

-- name: send_many
-- One statement. RowVersion is assigned in the order asked for, so it follows the order of the batch.
insert into {table} (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select newid(), null, null, 1,
    dateadd(millisecond, ttbr_ms %% 86400000, dateadd(day, ttbr_ms / 86400000, getutcdate())), headers, body
from (values {rows}) as message (place, ttbr_ms, headers, body)
order by place

-- name: send_many_without_recoverable
-- As send_many, where the Recoverable column was dropped.
insert into {table} (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select newid(), null, null,
    dateadd(millisecond, ttbr_ms %% 86400000, dateadd(day, ttbr_ms / 86400000, getutcdate())), headers, body
from (values {rows}) as message (place, ttbr_ms, headers, body)
order by place

-- name: row
-- One row of send_many.
({place}, cast(%(ttbr_ms_{place})s as bigint), %(headers_{place})s, %(body_{place})s)

-- name: receive
-- Finds and deletes the lowest unlocked RowVersions, from low on, in one statement. Expiry is judged at this statement.
with message as (
    select top ({most}) Id, CorrelationId, ReplyToAddress, Expires, Headers, Body, RowVersion
    from {table} with (updlock, readpast, rowlock)
    where RowVersion >= %(low)s
    order by RowVersion
)
delete from message
output lower(convert(char(36), deleted.Id)) as id, deleted.RowVersion as seq,
    case when deleted.Expires <= getutcdate() then 1 else 0 end as expired, deleted.Headers as headers, deleted.Body as body,
    deleted.CorrelationId as correlation_id, deleted.ReplyToAddress as reply_to

-- name: peek_count
-- Counted, as documented, but up to the number of receives that a worker may start: counting a long queue times out.
select count(*) as pending, min(RowVersion) as head
from (
    select top ({most}) RowVersion from {table} with (readpast, readcommittedlock) order by RowVersion
) as waiting

-- name: peek_range
-- Highest minus lowest unlocked RowVersion, plus one: two index lookups, however many rows there are.
select (
        select top (1) RowVersion from {table} with (readpast, readcommittedlock) order by RowVersion desc
    ) - head.RowVersion + 1 as pending, head.RowVersion as head
from (
    select top (1) RowVersion from {table} with (readpast, readcommittedlock) order by RowVersion
) as head

-- name: purge
-- A batch small enough that the server does not lock the whole table; locked rows are left to their owners.
delete top ({most}) from {table} with (rowlock, readpast)

-- name: purge_expired
-- As purge, for expired messages; the comparison is that of receive.
delete top ({most}) from {table} with (rowlock, readpast) where Expires <= getutcdate()
