-- name: create
-- As an endpoint's installer leaves it; all endpoints of a system share this table.
create table if not exists {table} (
    queueaddress varchar(200) not null,
    endpoint varchar(200) not null,
    topic varchar(200) not null,
    primary key (endpoint, topic)
) with (fillfactor = 100)

-- name: subscribe
-- One row per endpoint and topic: an endpoint that moved replaces its address.
insert into {table} (queueaddress, endpoint, topic)
values (%(queueaddress)s, %(endpoint)s, %(topic)s)
on conflict (endpoint, topic) do update set queueaddress = excluded.queueaddress

-- name: subscribe_seen
-- An unsubscribe by hand is taken back: what an endpoint has subscribed since stays as it is.
insert into {table} (queueaddress, endpoint, topic)
values (%(queueaddress)s, %(endpoint)s, %(topic)s)
on conflict (endpoint, topic) do nothing

-- name: unsubscribe
-- By endpoint and topic, whatever the address is now.
delete from {table} where endpoint = %(endpoint)s and topic = %(topic)s

-- name: subscribers
-- Each queue once, however many of the event's types it subscribed to.
select distinct queueaddress from {table}
where topic operator(pg_catalog.=) any(%(topics)s::pg_catalog.text[]) order by queueaddress

-- name: rows
-- For display, without locks; more rows than anybody subscribes to are cut.
select queueaddress, endpoint, topic from {table} order by topic, endpoint, queueaddress limit {most}

-- name: present
-- By the catalog, which needs no right on the tables: a subscriber's queue may be in a schema that we may not read.
select n.nspname as schema, c.relname as "table"
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p')
  and (n.nspname, c.relname) in (select * from unnest(%(schemas)s::text[], %(tables)s::text[]))

-- name: published
-- The newest published messages of an audit queue: the only trace of events that have no subscriber.
select headers from (select headers from {table} order by seq desc limit {most}) newest
where octet_length(headers) < 65536 and headers like '%%"NServiceBus.MessageIntent"%%Publish%%'

-- name: unsubscribe_seen
-- Only what a person saw: an endpoint that moved meanwhile stays subscribed. A row being written at this moment is skipped.
delete from {table}
where (endpoint, topic) in (
    select endpoint, topic from {table}
    where endpoint = %(endpoint)s and topic = %(topic)s and queueaddress = %(queueaddress)s for update skip locked)
  and queueaddress = %(queueaddress)s
