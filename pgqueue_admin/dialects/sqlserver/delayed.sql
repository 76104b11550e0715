-- name: create
-- As the transport documents it; the destination is in a header.
create table {table} (
    Headers nvarchar(max) not null,
    Body varbinary(max) null,
    Due datetime not null,
    RowVersion bigint identity(1,1) not null
)

-- name: index_due
-- Each search for due messages starts there.
create nonclustered index Index_Due on {table} (Due)

-- name: store
-- Due at an instant, or after a delay by the server's clock. Days are added apart: dateadd takes no more milliseconds.
insert into {table} (Headers, Body, Due)
select headers, body,
    coalesce(cast(at as datetime), dateadd(millisecond, delay_ms %% 86400000, dateadd(day, delay_ms / 86400000, getutcdate())))
from (values {rows}) as message (place, headers, body, at, delay_ms)
order by place

-- name: row
-- One row of store.
({place}, %(headers_{place})s, %(body_{place})s, cast(%(at_{place})s as datetime2), cast(%(delay_ms_{place})s as bigint))

-- name: move_due
-- Soonest first, with a new id each; rows that another mover has locked are left to it.
with due as (
    select top ({batch}) Headers, Body, Due from {table} with (updlock, readpast, rowlock)
    where Due <= getutcdate()
    order by Due
)
delete from due
output newid(), null, null, 1, null, deleted.Headers, deleted.Body
into {queue} (Id, CorrelationId, ReplyToAddress, Recoverable, Expires, Headers, Body)

-- name: move_due_without_recoverable
-- As move_due, into a queue whose Recoverable column was dropped.
with due as (
    select top ({batch}) Headers, Body, Due from {table} with (updlock, readpast, rowlock)
    where Due <= getutcdate()
    order by Due
)
delete from due
output newid(), null, null, null, deleted.Headers, deleted.Body
into {queue} (Id, CorrelationId, ReplyToAddress, Expires, Headers, Body)

-- name: next_due
-- In how many seconds. Overdue rows are left out: another mover has them locked, and they would hide the next one.
select top (1) datediff_big(millisecond, getutcdate(), Due) / 1000.0 as seconds
from {table} with (readpast, readcommittedlock)
where Due > getutcdate()
order by Due
