-- name: begin
-- Not by the driver, which would commit it.
begin

-- name: prepare
-- Takes no parameters. In a failed transaction the server would roll back without an error: that is checked before.
prepare transaction {gid}

-- name: commit
-- In any session of the same role.
commit prepared {gid}

-- name: rollback
-- In any session of the same role.
rollback prepared {gid}

-- name: prepared
-- Also those that this role may not end: their decisions must not be deleted for that.
select gid from pg_prepared_xacts
where database = current_database() and starts_with(gid, %(prefix)s)

-- name: most
-- Zero: this server prepares nothing.
select current_setting('max_prepared_transactions')::int

-- name: in_doubt
-- Of the whole server. The lock on its own number tells which locks are its; table names exist in their own database only.
with locks as materialized (select * from pg_locks),
held as (
    select p.gid, l.database, l.relation
    from pg_prepared_xacts p
    join locks own on own.granted and own.pid is null and own.locktype = 'transactionid' and own.transactionid = p.transaction
    join locks l on l.pid is null and l.locktype = 'relation' and l.virtualtransaction = own.virtualtransaction
)
select p.gid::text as name, p.prepared, p.owner::text as owner, p.database::text as database,
    p.database = current_database() as is_here,
    array(
        select n.nspname || '.' || c.relname
        from held h join pg_class c on c.oid = h.relation join pg_namespace n on n.oid = c.relnamespace
        where h.gid = p.gid and c.relkind in ('r', 'p')
          and h.database = (select oid from pg_database where datname = current_database())
        order by 1) as tables,
    (
        select count(distinct w.pid) from locks w
        where not w.granted and (w.transactionid = p.transaction or (w.locktype = 'relation' and exists (
            select from held h where h.gid = p.gid and h.database = w.database and h.relation = w.relation)))) as waiting
from pg_prepared_xacts p
where starts_with(p.gid, %(prefix)s)
order by p.prepared, p.gid limit {most}
