-- columns: Of every message shown; locked rows are skipped, so none is in flight. Text as bytes: half a letter breaks no page.
Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size

-- upwards: By key, never by offset: rows that leave meanwhile shift nothing.
select top (%(limit)s) Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion > %(after)s order by RowVersion

-- downwards: As upwards, descending. Inclusive: otherwise the largest bigint could not be reached.
select top (%(limit)s) Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion <= %(last)s order by RowVersion desc

-- upwards_tied: As upwards, where RowVersion may repeat: Id separates equal ones.
select top (%(limit)s) Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion > %(after)s or (RowVersion = %(after)s and Id > cast(%(id)s as uniqueidentifier))
order by RowVersion, Id

-- downwards_tied: As upwards_tied, descending.
select top (%(limit)s) Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion < %(last)s or (RowVersion = %(last)s and Id < cast(%(id)s as uniqueidentifier))
order by RowVersion desc, Id desc

-- expired: Reads a bounded stretch, and returns how far it read.
declare @at datetime2 = coalesce(cast(%(now)s as datetime2), sysutcdatetime());
declare @seen table (place int not null primary key, seq bigint not null, is_over bit not null);
insert into @seen (place, seq, is_over)
select row_number() over (order by stretch.RowVersion), stretch.RowVersion, case when stretch.Expires <= @at then 1 else 0 end
from (
    select top (20000) RowVersion, Expires from [dbo].[Sales] with (readpast, readcommittedlock)
    where RowVersion > %(after)s order by RowVersion
) as stretch;
select (select ended.seq as value from @seen as ended where ended.is_over = 1 order by ended.seq for json path) as seqs_json,
    count(*) as looked_at, max(seen.seq) as looked_to
from @seen as seen

-- listed: Messages by their RowVersion.
select Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion in (select cast(value as bigint) from openjson(%(seqs)s)) order by RowVersion

-- message: A message without its body. No index has the id: the whole table may be read for it, by one processor.
select Id as id, RowVersion as seq, convert(varchar(23), Expires, 121) as expires_text,
todatetimeoffset(cast(Expires as datetime2), 0) as expires_at,
cast(case when Expires <= coalesce(cast(%(now)s as datetime2), sysutcdatetime()) then 1 else 0 end as bit) as is_expired,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales] with (readpast, readcommittedlock) where Id = cast(%(id)s as uniqueidentifier) option (maxdop 1)

-- there: Whether the row is there and not in flight.
select cast(case when exists (
    select 1 from [dbo].[Sales] with (readpast, readcommittedlock) where Id = cast(%(id)s as uniqueidentifier)
) then 1 else 0 end as bit) as is_there

-- body: Cut in the database, so that a large body never travels whole.
select substring(Body, %(offset)s + 1, %(length)s) as part, datalength(Body) as size
from [dbo].[Sales] with (readpast, readcommittedlock) where Id = cast(%(id)s as uniqueidentifier) option (maxdop 1)

-- body_at: As body, for a known RowVersion, which an index has.
select substring(Body, %(offset)s + 1, %(length)s) as part, datalength(Body) as size
from [dbo].[Sales] with (readpast, readcommittedlock)
where RowVersion = %(seq)s and Id = cast(%(id)s as uniqueidentifier) option (maxdop 1)

-- numbered_body: As body, for a message without an id.
select substring(Body, %(offset)s + 1, %(length)s) as part, datalength(Body) as size
from [dbo].[Sales.Delayed] with (readpast, readcommittedlock) where RowVersion = %(number)s

-- body_starts: The start of each body on one page.
select Id as id, cast(case when datalength(Body) > %(most)s then 1 else 0 end as bit) as is_cut, substring(Body, 1, %(most)s) as part
from [dbo].[Sales] with (readpast, readcommittedlock) where RowVersion in (select cast(value as bigint) from openjson(%(seqs)s))

-- seq_occupancy: One existence probe for each of equal steps between head and tail.
select cast(case when exists (
    select 1 from [dbo].[Sales] with (readpast, readcommittedlock)
    where RowVersion >= %(head)s + cast(floor(step.i * cast(%(span)s as decimal(20, 0)) / 96) as bigint)
      and RowVersion < %(head)s + cast(floor((step.i + 1) * cast(%(span)s as decimal(20, 0)) / 96) as bigint)
) then 1 else 0 end as bit) as filled
from (select low.i + 16 * high.i as i
from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15)) as low (i)
cross join (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15)) as high (i)) as step where step.i < 96 order by step.i

-- headers_at: Headers of one row, to read when it was sent. Those of 2 MiB or more are skipped: no sane sender writes them.
select cast(cast(Headers as nvarchar(max)) as varbinary(max)) as headers_utf16
from [dbo].[Sales] with (readpast, readcommittedlock) where RowVersion = %(seq)s and datalength(Headers) < 2097152

-- times_to_be_received: Headers of messages near the head that name a time to be received (T16).
select cast(cast(head.Headers as nvarchar(max)) as varbinary(max)) as headers_utf16
from (
    select top (50) Headers from [dbo].[Sales] with (readpast, readcommittedlock) where RowVersion >= %(low)s order by RowVersion
) as head
where datalength(head.Headers) < 131072 and head.Headers like N'%%"NServiceBus.TimeToBeReceived"%%'

-- delayed_columns: Of every delayed message shown. It has no id: its RowVersion serves as one.
RowVersion as id_number, concat(convert(varchar(23), Due, 121), '+00') as due_text, todatetimeoffset(cast(Due as datetime2), 0) as due_at,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size

-- delayed_upwards: Soonest first. RowVersion separates messages due at one instant, and the index on Due is still used.
select top (%(limit)s) RowVersion as id_number, concat(convert(varchar(23), Due, 121), '+00') as due_text, todatetimeoffset(cast(Due as datetime2), 0) as due_at,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales.Delayed] with (readpast, readcommittedlock)
where Due >= cast(%(due)s as datetime) and (Due > cast(%(due)s as datetime) or RowVersion > %(number)s)
order by Due, RowVersion

-- delayed_downwards: As delayed_upwards, descending.
select top (%(limit)s) RowVersion as id_number, concat(convert(varchar(23), Due, 121), '+00') as due_text, todatetimeoffset(cast(Due as datetime2), 0) as due_at,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales.Delayed] with (readpast, readcommittedlock)
where Due <= cast(%(due)s as datetime) and (Due < cast(%(due)s as datetime) or RowVersion < %(number)s)
order by Due desc, RowVersion desc

-- delayed_message: A delayed message without its body.
select RowVersion as id_number, concat(convert(varchar(23), Due, 121), '+00') as due_text, todatetimeoffset(cast(Due as datetime2), 0) as due_at,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales.Delayed] with (readpast, readcommittedlock) where RowVersion = %(number)s

-- delayed_body_starts: As body_starts, for delayed messages by their numbers.
select RowVersion as id_number, cast(case when datalength(Body) > %(most)s then 1 else 0 end as bit) as is_cut,
    substring(Body, 1, %(most)s) as part
from [dbo].[Sales.Delayed] with (readpast, readcommittedlock) where RowVersion in (select cast(value as bigint) from openjson(%(row_numbers)s))

-- due_spread: Of the soonest messages, how many fall due in each interval from now; the first interval holds the overdue.
select soonest.stretch as stretch, count(*) as messages
from (
    select (
        select count(*) from openjson(%(edges)s) as edge
        where cast(edge.value as float) <= datediff_big(millisecond, sysutcdatetime(), stored.Due) / cast(1000 as float)
    ) as stretch
    from (select top (%(most)s) Due from [dbo].[Sales.Delayed] with (readpast, readcommittedlock) order by Due) as stored
) as soonest
group by soonest.stretch

-- due_and_headers: Returns no rows: Due has no zone, so no session's zone can have shifted it.
select todatetimeoffset(sysutcdatetime(), 0) as due, cast(null as varbinary(max)) as headers_utf16 where 1 = 0

-- in_conversation: Conversation ids are in the headers only, which no index covers: the headers of the newest rows are read, except
-- large ones. Returns the matching rows, and how many were read.
declare @seen table (seq bigint not null, has_it bit not null);
insert into @seen (seq, has_it)
select a.seq, case when charindex(cast(%(name)s as nvarchar(200)) collate Latin1_General_BIN2, a.headers collate Latin1_General_BIN2) > 0
    and exists (
        select 1 from openjson(%(values)s) as spelling
        where charindex(cast(left(spelling.value, 2000) as nvarchar(2000)) collate Latin1_General_BIN2,
            a.headers collate Latin1_General_BIN2) > 0
    ) then 1 else 0 end
from (
    select top (%(newest)s) RowVersion as seq, case when datalength(Headers) <= 131072 then cast(Headers as nvarchar(max)) end as headers
    from [dbo].[Sales] with (readpast, readcommittedlock) order by RowVersion desc
) as a;
select (select mine.seq as value from @seen as mine where mine.has_it = 1 order by mine.seq desc for json path) as keys_json,
    count(*) as looked_at
from @seen as seen

-- delayed_in_conversation: As in_conversation, for those due soonest; returns their numbers, which delayed_listed takes.
declare @seen table (seq bigint not null, due datetime not null, has_it bit not null);
insert into @seen (seq, due, has_it)
select a.seq, a.due, case when charindex(cast(%(name)s as nvarchar(200)) collate Latin1_General_BIN2, a.headers collate Latin1_General_BIN2) > 0
    and exists (
        select 1 from openjson(%(values)s) as spelling
        where charindex(cast(left(spelling.value, 2000) as nvarchar(2000)) collate Latin1_General_BIN2,
            a.headers collate Latin1_General_BIN2) > 0
    ) then 1 else 0 end
from (
    select top (%(newest)s) RowVersion as seq, Due as due,
        case when datalength(Headers) <= 131072 then cast(Headers as nvarchar(max)) end as headers
    from [dbo].[Sales.Delayed] with (readpast, readcommittedlock) order by Due
) as a;
select (select mine.seq as value from @seen as mine where mine.has_it = 1 order by mine.due for json path) as keys_json,
    count(*) as looked_at
from @seen as seen

-- delayed_listed: Delayed messages by their numbers.
select RowVersion as id_number, concat(convert(varchar(23), Due, 121), '+00') as due_text, todatetimeoffset(cast(Due as datetime2), 0) as due_at,
cast(0 as bit) as is_in_flight,
cast(cast(substring(Headers, 1, 65536) as nvarchar(max)) as varbinary(max)) as headers_text_utf16,
case when datalength(Headers) > datalength(substring(Headers, 1, 65536)) then datalength(Headers) end as headers_beyond,
datalength(Body) as body_size from [dbo].[Sales.Delayed] with (readpast, readcommittedlock)
where RowVersion in (select cast(value as bigint) from openjson(%(ids)s)) order by Due, RowVersion
