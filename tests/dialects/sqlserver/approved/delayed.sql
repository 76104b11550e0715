-- create: As the transport documents it; the destination is in a header.
create table [dbo].[Sales.Delayed] (
    Headers nvarchar(max) not null,
    Body varbinary(max) null,
    Due datetime not null,
    RowVersion bigint identity(1,1) not null
)

-- index_due: Each search for due messages starts there.
create nonclustered index Index_Due on [dbo].[Sales.Delayed] (Due)

-- store: Due at an instant, or after a delay by the server's clock. Days are added apart: dateadd takes no more milliseconds.
insert into [dbo].[Sales.Delayed] (Headers, Body, Due)
select headers, body,
    coalesce(cast(at as datetime), dateadd(millisecond, delay_ms %% 86400000, dateadd(day, delay_ms / 86400000, getutcdate())))
from (values (0, %(headers_0)s, %(body_0)s, cast(%(at_0)s as datetime2), cast(%(delay_ms_0)s as bigint)), (1, %(headers_1)s, %(body_1)s, cast(%(at_1)s as datetime2), cast(%(delay_ms_1)s as bigint))) as message (place, headers, body, at, delay_ms)
order by place

-- row: One row of store.
(0, %(headers_0)s, %(body_0)s, cast(%(at_0)s as datetime2), cast(%(delay_ms_0)s as bigint))

-- move_due: Soonest first, with a new id each; rows that another mover has locked are left to it.
with due as (
    select top (100) Headers, Body, Due from [dbo].[Sales.Delayed] with (updlock, readpast, rowlock)
    where Due <= getutcdate()
    order by Due
)
delete from due
output newid(), null, null, 1, null, deleted.Headers, deleted.Body
into [dbo].[Sales] (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)

-- move_due_without_recoverable: As move_due, into a queue whose Recoverable column was dropped.
with due as (
    select top (100) Headers, Body, Due from [dbo].[Sales.Delayed] with (updlock, readpast, rowlock)
    where Due <= getutcdate()
    order by Due
)
delete from due
output newid(), null, null, null, deleted.Headers, deleted.Body
into [dbo].[Sales] (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)

-- next_due: In how many seconds. Overdue rows are left out: another mover has them locked, and they would hide the next one.
select top (1) datediff_big(millisecond, getutcdate(), Due) / 1000.0 as seconds
from [dbo].[Sales.Delayed] with (readpast, readcommittedlock)
where Due > getutcdate()
order by Due
