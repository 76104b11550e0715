-- name: tables
-- Candidates by their columns, in one catalog query; monitor.table_classifier judges which shape they have.
select n.nspname as schema, c.relname as "table", c.oid::bigint as oid, shape.columns, seq.seq_indexed, seq.seq_unique,
       exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) as has_primary_key,
       sequence.relname as sequence, sequence.nspname as sequence_schema, sequence.seqmax as sequence_max,
       sequence.is_readable as sequence_is_readable, sequence.step as sequence_step,
       pages.total * current_setting('block_size')::bigint as size_bytes,
       -- whatever its policies allow now: they may differ at the next read, and none is evaluated
       row_security_active(c.oid) as hides_rows
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    -- a user-defined type may have a cast function: our comparisons would run it
    select jsonb_object_agg(
        a.attname, format_type(a.atttypid, null) || case when a.atttypid < 16384 then '' else ' (user-defined)' end
    ) as columns
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
) shape
left join lateral (
    select a.attnum, led.by > 0 as seq_indexed, led.seq_unique
    from pg_attribute a
    cross join lateral (
        select count(*) as by, coalesce(bool_or(i.indisunique and i.indnkeyatts = 1), false) as seq_unique
        from pg_index i
        where i.indrelid = c.oid and i.indisvalid and i.indpred is null and i.indkey[0] = a.attnum
    ) led
    where a.attrelid = c.oid and not a.attisdropped
      and a.attname = case when shape.columns ?& array['lock_expires_at', 'message'] then 'id' else 'seq' end
) seq on true
left join lateral (
    select sc.relname, sn.nspname, case when s.seqincrement > 0 and not s.seqcycle then s.seqmax end as seqmax,
           s.seqincrement > 0
               and has_sequence_privilege(s.seqrelid, 'select') and has_schema_privilege(sn.oid, 'usage') as is_readable,
           -- no step where numbers do not count rows: sessions cache some, or another table takes some
           case when s.seqincrement < 0 or s.seqcache = 1 and not exists (
               -- the class is compared last: by it the planner would read all defaults here, too
               select from pg_depend d
               where d.refclassid = 'pg_class'::regclass and d.refobjid = s.seqrelid and (
                   select f.adrelid <> c.oid and not (select o.relispartition from pg_class o where o.oid = f.adrelid)
                   from pg_attrdef f where f.oid = d.objid and f.tableoid = d.classid)
           ) then s.seqincrement end as step
    from pg_sequence s
    join pg_class sc on sc.oid = s.seqrelid
    join pg_namespace sn on sn.oid = sc.relnamespace
    where s.seqrelid in (
        select d.objid from pg_depend d
        where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
          and d.refobjid = c.oid and d.refobjsubid = seq.attnum and d.deptype in ('a', 'i')
        union all
        -- not joined: in a catalog that was never analysed the planner would read all defaults of the database for each
        select d.refobjid from pg_depend d
        where d.classid = 'pg_attrdef'::regclass and d.refclassid = 'pg_class'::regclass
          and d.objid = (select f.oid from pg_attrdef f where f.adrelid = c.oid and f.adnum = seq.attnum)
    )
    limit 1
) sequence on true
cross join lateral (
    -- two sums, each by a key: one condition for both would read all relations for each table
    select ((select coalesce(sum(p.relpages), 0) from pg_class p where p.oid in (c.oid, c.reltoastrelid))
        + (select coalesce(sum(p.relpages), 0)
           from pg_index i join pg_class p on p.oid = i.indexrelid where i.indrelid = c.oid))::bigint as total
) pages
where c.relkind in ('r', 'p') and not c.relispartition
  and n.nspname = any(%(schemas)s) and (
      %(family)s::text is null or c.relname = %(family)s
      or starts_with(c.relname, %(family)s || '.') or starts_with(%(family)s, c.relname || '.')
  )
  and (shape.columns ?& array['id', 'headers', 'body'] or shape.columns ?& array['queueaddress', 'endpoint', 'topic']
       or shape.columns ?& array['id', 'message', 'created_at'])
order by 1, 2

-- name: unwatched
-- Tables with a queue's five columns in schemas that are not watched, counted from the catalog alone: none is read.
select n.nspname as schema, count(*) as tables
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition
  and n.nspname <> all(%(schemas)s) and n.nspname <> 'information_schema' and not starts_with(n.nspname::text, 'pg_')
  and (select count(*) = 5 from pg_attribute a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         and (a.attname, a.atttypid) in (
             ('id', 'uuid'::regtype), ('expires', 'timestamp'::regtype), ('headers', 'text'::regtype),
             ('body', 'bytea'::regtype), ('seq', 'integer'::regtype), ('seq', 'bigint'::regtype)))
group by n.nspname
order by tables desc, n.nspname

-- name: calls
-- Tables with a function of another role that planning a query would run as us: the planner computes what is constant
-- in predicates and expressions of indexes and statistics, in partition keys, and in the checks of a table's
-- partitions. Found from the functions, of which there are few: dependencies on built-in ones are not recorded.
with recursive called as (
    select d.classid, d.objid, p.oid::regprocedure::text as name, p.proowner as owner
    from pg_depend d join pg_proc p on p.oid = d.refobjid
    where d.refclassid = 'pg_proc'::regclass
    union all
    select d.classid, d.objid, o.oid::regoperator::text, o.oprowner
    from pg_depend d join pg_operator o on o.oid = d.refobjid
    where d.refclassid = 'pg_operator'::regclass
), by_table as (
    select coalesce(i.indrelid, s.stxrelid, k.conrelid, c.oid) as oid, called.name, k.oid is not null as is_check
    from called
    join pg_roles r on r.oid = called.owner and not r.rolsuper and r.rolname <> current_user
    left join pg_class c on called.classid = 'pg_class'::regclass and c.oid = called.objid and c.relkind in ('r', 'p')
    left join pg_index i on called.classid = 'pg_class'::regclass and i.indexrelid = called.objid
    left join pg_statistic_ext s on called.classid = 'pg_statistic_ext'::regclass and s.oid = called.objid
    left join pg_constraint k on called.classid = 'pg_constraint'::regclass and k.oid = called.objid
), with_parents as (
    select oid, name, is_check from by_table where oid <> 0
    union
    select i.inhparent, p.name, false from pg_inherits i join with_parents p on i.inhrelid = p.oid
)
-- reading a table does not evaluate its own checks
select oid::bigint as oid, min(name) as name from with_parents where not is_check group by oid

-- name: holders
-- Which session blocks readers of a table, lock owners first: only this mode blocks them.
-- Names, not regclass, which would wait for the lock. since is visible to roles that may see other roles' sessions.
select l.pid, l.granted, a.application_name, a.usename::text as "user", coalesce(a.xact_start, p.prepared) as since,
       l.pid is null as is_prepared
from pg_locks l
join pg_class c on c.oid = l.relation
join pg_namespace n on n.oid = c.relnamespace
left join pg_stat_activity a on a.pid = l.pid
left join pg_prepared_xacts p on l.pid is null and '-1/' || p.transaction = l.virtualtransaction
where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock'
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
  and n.nspname = %(schema)s and c.relname = %(table)s
order by l.granted desc, l.pid
limit 1

-- name: sizes
-- True sizes, apart from the catalog's query: a table under an exclusive lock makes this one wait.
select t.oid, (
    select coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(t.oid::oid))
    from pg_partition_tree(t.oid::oid)
)::bigint as size_bytes
from unnest(%(oids)s::bigint[]) as t(oid)

-- name: evidence
-- What kind of messages the table holds, by a header that only failed or audited ones carry; the newest few suffice.
select count(*) as rows, count(*) filter (where failed) as failed, count(*) filter (where audited) as audited
from (
    select headers like '%%"NServiceBus.FailedQ"%%' as failed,
           headers like '%%"NServiceBus.ProcessingEnded"%%' as audited
    from {table} order by seq desc limit 5
) newest

-- name: depth
-- One snapshot, index probes, no row locks: a count up to the cap, above it the share of probes that hit a row (C2).
with clock as materialized (
    select coalesce(%(now)s::timestamptz, clock_timestamp()) as now
), ends as materialized (
    select (select seq from {table} where seq >= %(low)s::bigint order by seq limit 1)::bigint as head,
           (select seq from {table} where seq >= %(low)s::bigint order by seq desc limit 1)::bigint as tail
), probed as materialized (
    -- one probe in each of equal steps, at a place within the step that varies but is the same every time
    select count(hit.seq) as hits, count(hit.seq) filter (where hit.expires <= clock.now at time zone 'UTC') as expired
    from ends cross join clock cross join generate_series(0, {probes} - 1) as step(i)
    left join lateral (
        select seq, expires from {table} held  -- an alias: its own name may be one of these here
        where seq = ends.head
            + floor((step.i + mod((step.i + 1) * 0.6180339887, 1)) * (ends.tail - ends.head + 1) / {probes})::bigint
    ) hit on true
    where ends.tail - ends.head >= {cap}
), running as materialized (
    -- read only if some row was ever touched. After a rollback the row keeps the xid, but no session runs under it
    select backend_xid as xid from pg_stat_activity where backend_xid is not null
    union all select transaction from pg_prepared_xacts
), reach as materialized (
    -- far above the cap a count would be discarded: only the head's window is read, for what is in flight there
    select case when hits >= {few} and hits * (tail - head + 1) > 1.5 * {cap} * {probes} then {window}
                else {cap} + 1 end as rows
    from probed, ends
), counted as materialized (
    select count(*) as rows,
           count(*) filter (where taken) as in_flight,
           count(*) filter (where over and not taken) as expired,
           min(seq) filter (where not over and not taken)::bigint as ready_head,
           array_agg(seq::bigint order by place) filter (where mod(place, {step}) = 1) as marks
    from (
        select seq, row_number() over () as place,
               coalesce(expires <= (select now at time zone 'UTC' from clock), false) as over,
               xmax <> '0'::xid and xmax in (select xid from running) as taken
        from (
            select seq, expires, xmax from {table} where seq >= (select head from ends) order by seq limit {cap} + 1
        ) up_to_cap
        limit (select rows from reach)
    ) row
)
select clock.now as at, ends.head, ends.tail, probed.hits, probed.expired as hits_expired,
       counted.rows, counted.rows >= reach.rows as more,
       case when not pg_is_in_recovery() then counted.in_flight end as in_flight,  -- a standby does not know who runs
       counted.expired, counted.ready_head, counted.marks,
       {sent} as sent_total,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8 as seconds
from clock, ends, probed, reach, counted

-- name: sent
-- Part of depth: how far the sequence has counted. Read as a table: its function would take a lock that writers take.
(select case when is_called then last_value else last_value - {increment} end from {sequence})

-- name: lease
-- As depth, for the lease queue: what is locked, over, waiting and due later, each by its index up to the cap; above it
-- the share of probes by id that hit such a row. A lock is a fact of the row, so nothing here is a hint.
with clock as materialized (
    select coalesce(%(now)s::timestamptz, clock_timestamp()) as now
), ends as materialized (
    select (select id from {table} order by id limit 1)::bigint as head,
           (select id from {table} order by id desc limit 1)::bigint as tail
), probed as materialized (
    select count(*) filter (where hit.is_free and hit.is_due) as waiting,
           count(*) filter (where hit.is_free and not hit.is_due) as later,
           count(*) filter (where hit.is_over) as over, count(*) filter (where not hit.is_over) as locked
    from ends cross join clock cross join generate_series(0, {probes} - 1) as step(i)
    left join lateral (
        select lock_expires_at is null as is_free, {is_due} as is_due,
               lock_expires_at <= clock.now at time zone 'UTC' as is_over
        from {table} held
        where id = ends.head
            + floor((step.i + mod((step.i + 1) * 0.6180339887, 1)) * (ends.tail - ends.head + 1) / {probes})::bigint
    ) hit on true
    where ends.tail - ends.head >= {cap}
), locked as materialized (
    select count(*) as rows
    from (
        select from {table}, clock
        where lock_expires_at > clock.now at time zone 'UTC' order by lock_expires_at limit {cap} + 1
    ) up_to_cap
), over as materialized (
    select count(*) as rows
    from (
        select from {table}, clock
        where lock_expires_at <= clock.now at time zone 'UTC' order by lock_expires_at limit {cap} + 1
    ) up_to_cap
), waiting as materialized (
    select count(*) as rows, min(place) as first, max(place) as last,
           array_agg(place order by nth) filter (where mod(nth, {step}) = 1) as marks
    from (
        select place, row_number() over () as nth
        from (
            select {place} as place from {table}, clock
            where lock_expires_at is null and {is_due} order by {order} limit {cap} + 1
        ) up_to_cap
    ) row
), oldest as materialized (
    select {since} as since from {table}, clock where lock_expires_at is null and {is_due} order by {order} limit 1
), later as materialized ({later})
select clock.now as at, ends.head, ends.tail,
       probed.waiting as hits_waiting, probed.later as hits_later, probed.over as hits_over, probed.locked as hits_locked,
       locked.rows as locked, over.rows as over,
       waiting.rows as waiting, waiting.first, waiting.last, waiting.marks, oldest.since as oldest_at,
       later.rows as later, later.next_due,
       {sent} as sent_total,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8 as seconds
from clock, ends, probed, locked, over, waiting, later left join oldest on true

-- name: lease_over
-- Expired locks that nobody has ended: how many up to the cap, and since when the first is, by the index of that column.
select count(*) as rows, least(count(*), {cap}) as number, min(since) at time zone 'UTC' as since, clock_timestamp() as at
from (
    select greatest(lock_expires_at, '0001-01-02') as since from {table}
    where lock_expires_at <= clock_timestamp() at time zone 'UTC' order by lock_expires_at limit {cap} + 1
) up_to_cap

-- name: lease_place
-- Part of lease: a message's position in the order of claims, as one number of its time and its id.
-- Only a claim of the first message moves it on.
extract(epoch from available_at) * 1e6 * 9223372036854775808 + id

-- name: lease_order
-- Part of lease: the order of claims.
available_at, id

-- name: lease_is_due
-- Part of lease.
available_at <= clock.now

-- name: lease_since
-- Part of lease: since when its first message could be claimed. One that is older than the column has waited longer.
case when attempts = 0 and created_at between '0001-01-02' and '9999-12-30'
     then least(available_at, created_at at time zone 'UTC') else available_at end

-- name: lease_later
-- Part of lease: messages that were released for a later time.
select count(*) as rows, min(due) as next_due
from (
    select available_at as due from {table}, clock
    where lock_expires_at is null and available_at > clock.now order by available_at, id limit {cap} + 1
) up_to_cap

-- name: original_place
-- In place of lease_place, for a table without our columns: its workers go by the id in the notification.
id::numeric

-- name: original_order
-- In place of lease_order.
id

-- name: original_is_due
-- In place of lease_is_due: nothing is released for later.
true

-- name: original_since
-- In place of lease_since. Sessions of its clients wrote it in their own zones.
case when created_at between '0001-01-02' and '9999-12-30' then created_at at time zone 'UTC' end

-- name: original_later
-- In place of lease_later.
select 0::bigint as rows, null::timestamptz as next_due

-- name: not_told
-- Part of depth where the role may not read the sequence.
null::bigint

-- name: depth_unindexed
-- A copy has no index on seq: looking for head and tail above the cap would read the whole table.
-- A message may lack any value that its endpoint would have written.
select max(at) as at,
       case when count(there) <= {cap} then min(seq)::bigint end as head,
       case when count(there) <= {cap} then max(seq)::bigint end as tail,
       count(there) as rows, count(there) > {cap} as more,
       0 as hits, 0 as hits_expired, null::bigint as in_flight, null::bigint[] as marks,
       count(there) filter (where over) as expired,
       case when count(there) <= {cap} then min(seq) filter (where not over)::bigint end as ready_head,
       null::bigint as sent_total, 0::float8 as seconds
from (select coalesce(%(now)s::timestamptz, clock_timestamp()) as at) clock
left join lateral (
    select true as there, seq, coalesce(expires <= clock.at at time zone 'UTC', false) as over
    from {table} held limit {cap} + 1
) up_to_cap on true

-- name: delayed
-- A due time is a UTC wall clock as the writer's session zone read it (wire sheet 3): the skew is subtracted.
-- Above the cap rows are counted in some of its pages, the same every time: the catalog's estimate may be days old.
select max(at) as at, count(there) as rows, count(*) filter (where due <= at) as overdue,
       min(due) filter (where due < '9999-01-01') as next_due,
       case when count(there) > {cap} then (
           select round(count(*) / min(share))::bigint
           from (select least(1, {pages}::float8 * current_setting('block_size')::int / nullif({bytes}, 0)) as share) sampled,
               {table} tablesample system ((
                   select least(100, 100.0 * {pages} * current_setting('block_size')::int / nullif({bytes}, 0))
               )) repeatable (1)
       ) end as estimate
from (select coalesce(%(now)s::timestamptz, clock_timestamp()) as at) clock
left join lateral (
    -- times beyond the calendar count at its ends, where a skew can be subtracted
    select there, greatest(least(due, '9999-12-30'), '0001-01-03') - %(skew)s::interval as due
    from (select true as there, due from {table} order by due limit {cap} + 1) up_to_cap
) corrected on true

-- name: heap_bytes
-- Part of delayed: of a partitioned table, those of its partitions.
(select coalesce(sum(pg_relation_size(relid)), pg_relation_size(%(oid)s::bigint::oid))
 from pg_partition_tree(%(oid)s::bigint::oid))

-- name: within
-- A time limit for one transaction.
select set_config('statement_timeout', %(ms)s::text, true) as statement_timeout,
       set_config('lock_timeout', %(ms)s::text, true) as lock_timeout

-- name: patience
-- For a session that polls many tables each second: a locked table must not delay the others; plans are made once.
select set_config('lock_timeout', '200ms', false) as lock_timeout,
       set_config('plan_cache_mode', 'force_generic_plan', false) as plan_cache_mode

-- name: server_time
-- Expiry, age and due times are judged by one clock: the server's.
select clock_timestamp()
