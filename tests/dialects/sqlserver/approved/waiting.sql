-- count: What a purge would mean: as many as nobody has in hand, and between which numbers, by which what comes later is told.
select count(*) as number, min(RowVersion) as lowest, max(RowVersion) as up_to from [dbo].[Sales] with (readpast, readcommittedlock)

-- identity: A table that was made anew has another number or age; one that was emptied may number its rows anew.
select cast(o.object_id as bigint) as oid, convert(varchar(23), o.create_date, 121) as storage, cast(n.last_value as bigint) as last
from sys.tables o
left join sys.identity_columns n on n.object_id = o.object_id and n.name = N'RowVersion'
where o.object_id = object_id(%(table)s)

-- left: How many of these are there still, but for those in somebody's hands.
select count(*) as number from [dbo].[Sales] with (readpast, readcommittedlock) where RowVersion between %(lowest)s and %(up_to)s

-- runs: A trigger runs with the rights of whoever deletes.
select concat(N'trigger ', quotename(r.name)) as name
from sys.triggers r join sys.trigger_events e on e.object_id = r.object_id
where r.parent_id = object_id(%(table)s) and r.is_disabled = 0 and e.type_desc = N'DELETE'

-- own_columns: What the archive has no place for; what is computed comes by itself wherever the row goes.
select c.name as name from sys.columns c
where c.object_id = object_id(%(table)s) and c.is_computed = 0
    and c.name not in (N'Id', N'CorrelationId', N'ReplyToAddress', N'Recoverable', N'Expires', N'Headers', N'Body', N'RowVersion')

-- take: As crossing.take, between these numbers; what has a value in a column of its own stays.
with near as (
    select top (200) Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion,
        datalength(Headers) + coalesce(datalength(Body), 0) as bytes
    from [dbo].[Sales] with (updlock, readpast, rowlock)
    where RowVersion between %(lowest)s and %(up_to)s and [Tenant] is null
    order by RowVersion
), batch as (
    select Id, CorrelationId, ReplyToAddress, Expires, Headers, RowVersion, row_number() over (order by RowVersion) as nth,
        sum(cast(bytes as bigint)) over (order by RowVersion rows unbounded preceding) as carried
    from near
)
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from batch where nth = 1 or carried <= %(most)s order by RowVersion

-- unfilled: Part of take, of each such column.
and [Tenant] is null

-- hold: Exactly this row, if nobody has it in hand: a locked one is read past, so the act never waits for a handler.
select lower(convert(char(36), Id)) as id, CorrelationId as correlation_id, ReplyToAddress as reply_to, Expires as expires,
    Headers as headers, RowVersion as seq
from [dbo].[Sales] with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- numbers_of: Where rows with these ids lie, by a look that locks none of the others: no index has the id.
select lower(convert(char(36), Id)) as id, RowVersion as seq
from [dbo].[Sales] with (readpast, readcommittedlock)
where Id in (select cast(asked.value as uniqueidentifier) from openjson(%(ids)s) as asked)
option (maxdop 1)

-- has_own: Of one that is held.
select case when [Tenant] is null then 0 else 1 end as is_filled
from [dbo].[Sales] with (updlock, readpast, rowlock) where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier)

-- move: One that is held, with all it has but its number, which the target gives. Without a body it would wedge that queue.
insert into [dbo].[Billing] (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select Id, CorrelationId, ReplyToAddress, 1, Expires, Headers, Body from [dbo].[Sales] with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier) and Body is not null

-- move_without_recoverable: As move, where the target has no such column.
insert into [dbo].[Billing] (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select Id, CorrelationId, ReplyToAddress, Expires, Headers, Body from [dbo].[Sales] with (updlock, readpast, rowlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier) and Body is not null

-- hold_delayed: As hold, of a table of delayed messages, which have no id: its index has when they are due, and of those few the number tells
-- which.
select Headers as headers, RowVersion as seq
from [dbo].[Sales] with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- own_delayed_columns: As own_columns, of such a table.
select c.name as name from sys.columns c
where c.object_id = object_id(%(table)s) and c.is_computed = 0 and c.name not in (N'Headers', N'Body', N'Due', N'RowVersion')

-- has_own_delayed: As has_own, of such a table.
select case when [Tenant] is null then 0 else 1 end as is_filled
from [dbo].[Sales] with (updlock, readpast, rowlock) where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s

-- run_now: One that is held goes to its queue as the mover of due messages does it, with an id of ours. Without a body it would wedge that.
insert into [dbo].[Billing] (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)
select cast(%(id)s as uniqueidentifier), null, null, 1, null, Headers, Body from [dbo].[Sales] with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s and Body is not null

-- run_now_without_recoverable: As run_now, where the queue has no such column.
insert into [dbo].[Billing] (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)
select cast(%(id)s as uniqueidentifier), null, null, null, Headers, Body from [dbo].[Sales] with (updlock, readpast, rowlock)
where Due = cast(%(due)s as datetime) and RowVersion = %(seq)s and Body is not null
