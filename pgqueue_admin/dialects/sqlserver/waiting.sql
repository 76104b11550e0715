-- name: count
-- What a purge would delete: the number of unlocked rows, and their RowVersions, which tell later rows apart.
select count(*) as number, min(RowVersion) as lowest, max(RowVersion) as up_to from {table} with (readpast, readcommittedlock)

-- name: identity
-- A recreated table has another object id or creation date; an emptied one may restart its numbers.
select cast(o.object_id as bigint) as oid, convert(varchar(23), o.create_date, 121) as storage, cast(n.last_value as bigint) as last
from sys.tables o
left join sys.identity_columns n on n.object_id = o.object_id and n.name = N'RowVersion'
where o.object_id = object_id(%(table)s)

-- name: left
-- How many rows of the range are still there, without locked ones.
select count(*) as number from {table} with (readpast, readcommittedlock) where RowVersion between %(lowest)s and %(up_to)s

-- name: runs
-- A trigger runs with the rights of the deleting user.
select concat(N'trigger ', quotename(r.name)) as name
from sys.triggers r join sys.trigger_events e on e.object_id = r.object_id
where r.parent_id = object_id(%(table)s) and r.is_disabled = 0 and e.type_desc = N'DELETE'

-- name: own_columns
-- Columns that the archive has no place for. Computed ones are left out: they are computed anew wherever the row goes.
select c.name as name from sys.columns c
where c.object_id = object_id(%(table)s) and c.is_computed = 0
    and c.name not in (N'Id', N'CorrelationId', N'ReplyToAddress', N'Recoverable', N'Expires', N'Headers', N'Body', N'RowVersion')

-- name: take
-- As crossing.take, within this range; rows with a value in one of own_columns stay.
with near as (
    select top ({limit}) Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion,
        datalength(Headers) + coalesce(datalength(Body), 0) as bytes
    from {table} with (updlock, readpast, rowlock)
    where RowVersion between %(lowest)s and %(up_to)s{unfilled}
    order by RowVersion
), batch as (
    select Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion, row_number() over (order by RowVersion) as nth,
        sum(cast(bytes as bigint)) over (order by RowVersion rows unbounded preceding) as carried
    from near
)
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from batch where nth = 1 or carried <= %(most)s order by RowVersion

-- name: unfilled
-- Part of take, for each of own_columns.
 and {column} is null

-- name: hold
-- Exactly this row, unless it is locked: locked rows are skipped, so the act never waits for a handler.
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from {table} with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- name: numbers_of
-- The RowVersions of these ids, read without locking other rows: no index has the id.
select lower(convert(char(36), Id)) as id, RowVersion as seq
from {table} with (readpast, readcommittedlock)
where Id in (select cast(asked.value as uniqueidentifier) from openjson(%(ids)s) as asked)
option (maxdop 1)

-- name: has_own
-- Whether a held row has a value in this column.
select case when {column} is null then 0 else 1 end as is_filled
from {table} with (updlock, readpast, rowlock) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- name: move
-- A held row with all it has but RowVersion, which the target assigns. Without a body it would block that queue.
insert into {target} (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select Id, CorrelationId, ReplyToAddress, 1, Expires, Headers, Body from {table} with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier) and Body is not null

-- name: move_without_recoverable
-- As move, where the target has no such column.
insert into {target} (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select Id, CorrelationId, ReplyToAddress, Expires, Headers, Body from {table} with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier) and Body is not null

-- name: hold_delayed
-- As hold, for delayed messages, which have no id: the index finds the rows due at this instant, and RowVersion tells
-- which one is meant.
select Headers as headers, RowVersion as seq
from {table} with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- name: own_delayed_columns
-- As own_columns, for a table of delayed messages.
select c.name as name from sys.columns c
where c.object_id = object_id(%(table)s) and c.is_computed = 0 and c.name not in (N'Headers', N'Body', N'Due', N'RowVersion')

-- name: has_own_delayed
-- As has_own, for a table of delayed messages.
select case when {column} is null then 0 else 1 end as is_filled
from {table} with (updlock, readpast, rowlock) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- name: run_now
-- Moves a held row to its queue as the mover of due messages does, with an id of ours. Without a body it would block it.
insert into {target} (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select cast(%(id)s as uniqueidentifier), null, null, 1, null, Headers, Body from {table} with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s and Body is not null

-- name: run_now_without_recoverable
-- As run_now, where the queue has no such column.
insert into {target} (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select cast(%(id)s as uniqueidentifier), null, null, null, Headers, Body from {table} with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s and Body is not null
