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
-- Taken back by hand: what an endpoint has subscribed since stays as it is.
insert into {table} (queueaddress, endpoint, topic)
values (%(queueaddress)s, %(endpoint)s, %(topic)s)
on conflict (endpoint, topic) do nothing

-- name: unsubscribe
-- By endpoint and topic, whatever address it has now.
delete from {table} where endpoint = %(endpoint)s and topic = %(topic)s

-- name: subscribers
-- Each queue once, however many of the event's types it asked for.
select distinct queueaddress from {table}
where topic operator(pg_catalog.=) any(%(topics)s::pg_catalog.text[]) order by queueaddress

-- name: rows
-- Read as it stands, by whoever only looks; more than anybody subscribes to is cut.
select queueaddress, endpoint, topic from {table} order by topic, endpoint, queueaddress limit {most}

-- name: present
-- Asks the catalog, which needs no right on the tables: a subscriber's queue may lie in a schema that is not ours to read.
select n.nspname as schema, c.relname as "table"
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p')
  and (n.nspname, c.relname) in (select * from unnest(%(schemas)s::text[], %(tables)s::text[]))

-- name: published
-- The newest of an audit queue that were published: of what nobody subscribes to, no other trace is left.
select headers from (select headers from {table} order by seq desc limit {most}) newest
where octet_length(headers) < 65536 and headers like '%%"NServiceBus.MessageIntent"%%Publish%%'

-- name: unsubscribe_seen
-- Only what a person saw: an endpoint that moved meanwhile stays subscribed. One that somebody writes at this moment is left.
delete from {table}
where (endpoint, topic) in (
    select endpoint, topic from {table}
    where endpoint = %(endpoint)s and topic = %(topic)s and queueaddress = %(queueaddress)s for update skip locked)
  and queueaddress = %(queueaddress)s
