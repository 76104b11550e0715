-- name: server_time
-- Expiry, age and due times are judged by one clock: the server's.
select clock_timestamp()

-- name: create
-- Byte for byte what an endpoint's installer leaves in the catalog: key, index and sequence get their default names.
create table if not exists {table} (
    id uuid not null,
    expires timestamp without time zone,
    headers text not null,
    body bytea,
    seq serial not null,
    primary key (id),
    unique (seq)
)

-- name: columns
-- A table's columns, from the catalog: select would need a privilege that senders lack. A broken index does not count.
select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type,
       a.atthasdef or a.attidentity <> '' as has_default,
       count(i) > 0 as leads_an_index,
       coalesce(bool_or(i.indisunique and i.indnkeyatts = 1), false) as is_unique
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
left join pg_index i on i.indrelid = a.attrelid and i.indkey[0] = a.attnum and i.indisvalid and i.indpred is null
where n.nspname = %(schema)s and c.relname = %(name)s and c.relkind in ('r', 'p', 'v')
  and a.attnum > 0 and not a.attisdropped
group by a.attnum, a.attname, a.atttypid, a.atttypmod, a.atthasdef, a.attidentity
order by a.attnum

-- name: send
-- The server's clock sets the expiry: its UTC wall time at the start of the transaction, plus the TTBR.
-- As in all statements for sessions of handlers and callers, names are in full (docs/decisions/012).
insert into {table} (id, expires, headers, body)
values (
    coalesce(%(id)s::pg_catalog.uuid, pg_catalog.gen_random_uuid()),
    (pg_catalog.now() at time zone 'utc') operator(pg_catalog.+) (%(ttbr_ms)s::bigint operator(pg_catalog.*) interval '1 millisecond'),
    %(headers)s, %(body)s)

-- name: send_many
-- A batch is one round trip; seq is assigned after the sort, so that it follows the order of the batch.
insert into {table} (id, expires, headers, body)
select pg_catalog.gen_random_uuid(),
    (pg_catalog.now() at time zone 'utc') operator(pg_catalog.+) (ttbr_ms operator(pg_catalog.*) interval '1 millisecond'),
    headers, body
from rows from (
    pg_catalog.unnest(%(ttbrs_ms)s::bigint[]), pg_catalog.unnest(%(headers)s::pg_catalog.text[]),
    pg_catalog.unnest(%(bodies)s::pg_catalog.bytea[])
) with ordinality as message (ttbr_ms, headers, body, place)
order by place

-- name: expiries
-- When messages of a COPY expire: a COPY computes nothing, and this is the sum that send makes, in the same
-- transaction. In microseconds since 2000, as COPY takes it.
select ttbr_ms, (extract(epoch from
    (pg_catalog.now() at time zone 'utc') operator(pg_catalog.+) (ttbr_ms operator(pg_catalog.*) interval '1 millisecond')
        operator(pg_catalog.-) timestamp '2000-01-01') operator(pg_catalog.*) 1000000)::bigint as expires
from pg_catalog.unnest(%(ttbrs_ms)s::bigint[]) as ttbr_ms

-- name: load
-- A large batch: rows are streamed, nothing is planned, and seq is assigned in their order.
copy {table} (id, expires, headers, body) from stdin (format binary)

-- name: receive
-- One statement finds the lowest unlocked seq, and deletes it. From low on: below it are dead rows to walk through.
delete from {table}
where id operator(pg_catalog.=) (
    select id from {table} where seq operator(pg_catalog.>=) %(low)s::bigint order by seq limit 1 for update skip locked)
returning id::pg_catalog.text, seq,
    coalesce(expires operator(pg_catalog.<=) (pg_catalog.now() at time zone 'utc'), false) as expired, headers, body

-- name: receive_many
-- As receive, in one statement before all savepoints: only then do locked rows have the session's own transaction (xact).
delete from {table}
where id operator(pg_catalog.=) any(array(
    select id from {table} where seq operator(pg_catalog.>=) %(low)s::bigint order by seq limit {most} for update skip locked))
returning id::pg_catalog.text, seq,
    coalesce(expires operator(pg_catalog.<=) (pg_catalog.now() at time zone 'utc'), false) as expired, headers, body,
    pg_catalog.pg_current_xact_id()::pg_catalog.text as xact

-- name: is_committed
-- Of a transaction that somebody ended: what it received proves nothing, since another process may have it by now.
select pg_catalog.pg_xact_status(%(xact)s::pg_catalog.xid8) operator(pg_catalog.=) 'committed'

-- name: peek
-- Highest minus lowest unlocked seq, plus one, by locks; one if a row came back between the two lookups.
with head as (select seq from {table} order by seq limit 1 for update skip locked),
     tail as (select seq from {table} order by seq desc limit 1 for update skip locked)
select coalesce(tail.seq::bigint - head.seq + 1, 1) as pending, head.seq as head from head full join tail on true

-- name: purge
-- A chunk, from a seq on: locked rows are skipped, and dead ones are not walked through again.
with gone as (
    delete from {table}
    where id = any(array(
        select id from {table} where seq > %(after)s::bigint order by seq limit {most} for update skip locked))
    returning seq
)
select count(*) as rows, max(seq)::bigint as last from gone

-- name: purge_expired
-- As purge, for expired messages; the comparison is that of receive.
with gone as (
    delete from {table}
    where id = any(array(
        select id from {table}
        where seq > %(after)s::bigint and expires <= now() at time zone 'utc'
        order by seq limit {most} for update skip locked))
    returning seq
)
select count(*) as rows, max(seq)::bigint as last from gone
