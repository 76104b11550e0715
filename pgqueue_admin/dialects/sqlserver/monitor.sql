-- name: tables
-- Candidates by their columns, in one catalog query. A security policy runs its owner's function on each read of its table.
declare @family nvarchar(128) = %(family)s;
select s.name as [schema], o.name as [table], cast(o.object_id as bigint) as oid,
    (
        select c.name as name, t.name as type, t.is_user_defined as is_user_defined
        from sys.columns c join sys.types t on t.user_type_id = c.user_type_id
        where c.object_id = o.object_id
        for json path
    ) as columns_json,
    cast(case when led.number > 0 then 1 else 0 end as bit) as seq_indexed,
    cast(case when numbered.column_id is not null or led.unique_number > 0 then 1 else 0 end as bit) as seq_unique,
    cast(case when exists (
        select 1 from sys.indexes i where i.object_id = o.object_id and i.is_primary_key = 1
    ) then 1 else 0 end as bit) as has_primary_key,
    case when numbered.column_id is not null then o.name end as sequence,
    case when numbered.column_id is not null then s.name end as sequence_schema,
    cast(case type_name(numbered.system_type_id) when N'int' then 2147483647 when N'bigint' then 9223372036854775807 end as bigint)
        as sequence_max,
    cast(case when cast(numbered.increment_value as bigint) > 0 then 1 else 0 end as bit) as sequence_is_readable,
    cast(numbered.increment_value as bigint) as sequence_step,
    (
        select sum(u.total_pages) * 8192
        from sys.partitions p join sys.allocation_units u on u.container_id in (p.hobt_id, p.partition_id)
        where p.object_id = o.object_id
    ) as size_bytes,
    cast(case when exists (
        select 1 from sys.security_predicates f
        join sys.security_policies policy on policy.object_id = f.object_id and policy.is_enabled = 1
        where f.target_object_id = o.object_id
    ) then 1 else 0 end as bit) as hides_rows
from sys.tables o
join sys.schemas s on s.schema_id = o.schema_id
left join sys.columns seq on seq.object_id = o.object_id and seq.name = N'RowVersion'
left join sys.identity_columns numbered on numbered.object_id = seq.object_id and numbered.column_id = seq.column_id
outer apply (
    select count(*) as number, sum(case when i.is_unique = 1 and more.column_id is null then 1 else 0 end) as unique_number
    from sys.indexes i
    join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id and k.key_ordinal = 1
    left join sys.index_columns more on more.object_id = i.object_id and more.index_id = i.index_id and more.key_ordinal = 2
    where i.object_id = o.object_id and k.column_id = seq.column_id and i.is_disabled = 0 and i.has_filter = 0
) as led
where o.is_ms_shipped = 0
  and s.name in (select cast(value as nvarchar(128)) collate database_default from openjson(%(schemas)s))
  and (
      @family is null or o.name = @family
      or charindex(concat(o.name, N'.'), @family) = 1 or charindex(concat(@family, N'.'), o.name) = 1
  )
  and (
      3 = (select count(*) from sys.columns c where c.object_id = o.object_id and c.name in (N'Headers', N'Body', N'RowVersion'))
      or 3 = (select count(*) from sys.columns c where c.object_id = o.object_id and c.name in (N'QueueAddress', N'Endpoint', N'Topic'))
  )
order by s.name, o.name

-- name: calls
-- No rows: no query here runs foreign code. The computed column is not selected, and tables reports security policies.
select cast(0 as bigint) as oid, N'' as name where 1 = 0

-- name: holders
-- Which session blocks readers of a table, lock owners first: only these modes block. Needs VIEW SERVER STATE.
select top (1) l.request_session_id as pid, cast(case when l.request_status = N'GRANT' then 1 else 0 end as bit) as granted,
    s.program_name as application_name, s.login_name as [user],
    todatetimeoffset(dateadd(second, datediff(second, getdate(), getutcdate()), cast(t.transaction_begin_time as datetime2)), 0) as since
from sys.dm_tran_locks l
left join sys.dm_exec_sessions s on s.session_id = l.request_session_id
left join sys.dm_tran_active_transactions t on t.transaction_id = l.request_owner_id
where l.resource_type = N'OBJECT' and l.resource_database_id = db_id()
  and l.resource_associated_entity_id = object_id(concat(quotename(%(schema)s), N'.', quotename(%(table)s)))
  and l.request_mode in (N'X', N'Sch-M', N'BU')
order by case when l.request_status = N'GRANT' then 0 else 1 end, l.request_session_id

-- name: sizes
-- By allocated pages, which any login that may read the tables may see.
select cast(p.object_id as bigint) as oid, sum(u.total_pages) * 8192 as size_bytes
from sys.partitions p
join sys.allocation_units u on u.container_id in (p.hobt_id, p.partition_id)
where p.object_id in (select cast(value as int) from openjson(%(oids)s))
group by p.object_id

-- name: evidence
-- What kind of messages the table holds, by a header that only failed or audited ones carry; the newest few suffice.
select count(*) as rows, coalesce(sum(newest.failed), 0) as failed, coalesce(sum(newest.audited), 0) as audited
from (
    select top (5) case when Headers like N'%%"NServiceBus.FailedQ"%%' then 1 else 0 end as failed,
        case when Headers like N'%%"NServiceBus.ProcessingEnded"%%' then 1 else 0 end as audited
    from {table} with (readpast, readcommittedlock) order by RowVersion desc
) as newest

-- name: depth
-- As the transport peeks: locked rows are skipped, and not counted. Above the cap: the share of probes that hit a row.
declare @at datetime2 = coalesce(cast(%(now)s as datetime2), sysutcdatetime()), @began datetime2 = sysutcdatetime();
declare @hits int = 0, @hits_expired int = 0, @reach int = {cap} + 1;
declare @seen table (place int not null primary key, seq bigint not null, is_over bit not null);
declare @head bigint = (
    select top (1) RowVersion from {table} with (readpast, readcommittedlock) where RowVersion >= %(low)s order by RowVersion
);
declare @tail bigint = (
    select top (1) RowVersion from {table} with (readpast, readcommittedlock) where RowVersion >= %(low)s order by RowVersion desc
);
declare @span decimal(20, 0) = cast(@tail as decimal(20, 0)) - @head + 1;
select @hits = count(*), @hits_expired = coalesce(sum(case when hit.Expires <= @at then 1 else 0 end), 0)
from ({numbers}) as step
cross apply (
    select top (1) Expires from {table} with (readpast, readcommittedlock)
    where RowVersion = @head + cast(floor((step.i + ((step.i + 1) * 0.6180339887) %% 1) * @span / {probes}) as bigint)
) as hit
where step.i < {probes} and @span > {cap};
set @reach = case when @hits >= {few} and @hits * @span > 1.5 * {cap} * {probes} then {window} else @reach end;
insert into @seen (place, seq, is_over)
select row_number() over (order by stretch.RowVersion), stretch.RowVersion, case when stretch.Expires <= @at then 1 else 0 end
from (
    select top (@reach) RowVersion, Expires from {table} with (readpast, readcommittedlock)
    where RowVersion >= @head order by RowVersion
) as stretch;
select todatetimeoffset(@at, 0) as at, min(seen.seq) as head,
    case when count(*) >= @reach and @tail > max(seen.seq) then @tail else max(seen.seq) end as tail,
    @hits as hits, @hits_expired as hits_expired, count(*) as rows,
    cast(case when count(*) >= @reach then 1 else 0 end as bit) as more, cast(null as bigint) as in_flight,
    coalesce(sum(case when seen.is_over = 1 then 1 else 0 end), 0) as expired,
    min(case when seen.is_over = 0 then seen.seq end) as ready_head,
    (select mark.seq as value from @seen as mark where mark.place %% {step} = 1 order by mark.place for json path) as marks_json,
    {sent} as sent_total,
    datediff(millisecond, @began, sysutcdatetime()) / cast(1000 as float) as seconds
from @seen as seen

-- name: numbers
-- Part of others: the numbers 0 to 255.
select low.i + 16 * high.i as i
from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15)) as low (i)
cross join (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15)) as high (i)

-- name: sent
-- Part of depth: how far the identity has counted. It has no last value before the first insert.
(select coalesce(cast(n.last_value as bigint), cast(n.seed_value as bigint) - {increment})
    from sys.identity_columns n where n.object_id = object_id(%(sequence_name)s))

-- name: not_told
-- Part of depth, where the rows have no identity.
cast(null as bigint)

-- name: depth_unindexed
-- Without an index on RowVersion, finding head and tail would read the whole table.
declare @at datetime2 = coalesce(cast(%(now)s as datetime2), sysutcdatetime());
select todatetimeoffset(@at, 0) as at,
    case when count(*) <= {cap} then min(seen.RowVersion) end as head,
    case when count(*) <= {cap} then max(seen.RowVersion) end as tail,
    count(*) as rows, cast(case when count(*) > {cap} then 1 else 0 end as bit) as more,
    0 as hits, 0 as hits_expired, cast(null as bigint) as in_flight, cast(null as nvarchar(max)) as marks_json,
    coalesce(sum(case when seen.Expires <= @at then 1 else 0 end), 0) as expired,
    case when count(*) <= {cap} then min(case when seen.Expires <= @at then null else seen.RowVersion end) end as ready_head,
    cast(null as bigint) as sent_total, cast(0 as float) as seconds
from (select top ({cap} + 1) RowVersion, Expires from {table} with (readpast, readcommittedlock)) as seen

-- name: delayed
-- Due is UTC without a zone, so no session's zone is subtracted. Above the cap: the catalog's row count.
declare @at datetime2 = coalesce(cast(%(now)s as datetime2), sysutcdatetime());
select todatetimeoffset(@at, 0) as at, count(*) as rows, coalesce(sum(case when seen.Due <= @at then 1 else 0 end), 0) as overdue,
    todatetimeoffset(cast(min(seen.Due) as datetime2), 0) as next_due,
    case when count(*) > {cap} then {bytes} end as estimate
from (select top ({cap} + 1) Due from {table} with (readpast, readcommittedlock) order by Due) as seen

-- name: heap_bytes
-- Part of delayed: the catalog's row count, which includes locked rows.
(select sum(p.rows) from sys.partitions p where p.object_id = cast(%(oid)s as int) and p.index_id in (0, 1))

-- name: patience
-- For a session that polls many tables each second: a locked table must not delay the others.
set lock_timeout 200;
select 200 as lock_timeout

-- name: server_time
-- Expiry, age and due times are judged by one clock: the server's.
select todatetimeoffset(sysutcdatetime(), 0) as now
