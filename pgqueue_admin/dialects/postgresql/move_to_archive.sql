-- name: hold
-- Exactly this row, unless it is locked: locked rows are skipped, so the act never waits for a handler that may not
-- end. Of the body only whether there is one: it stays in the database.
select tableoid::bigint as part, ctid::text as place, id::text, seq,
    coalesce(expires <= now() at time zone 'utc', false) as expired, headers,
    case when body is not null then ''::bytea end as body
from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update skip locked

-- name: hold_delayed
-- As hold, for delayed messages: these have no seq, and one that was delayed anew is another.
select tableoid::bigint as part, ctid::text as place, id::text, 0 as seq, false as expired, headers,
    case when body is not null then ''::bytea end as body
from {table} where id = %(id)s::uuid and due = %(due)s::timestamptz for update skip locked

-- name: other_columns
-- Columns besides those that are moved, from the catalog; generated ones are computed anew wherever the row goes.
select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(name)s and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = '' and a.attname <> all(%(moved)s::text[])
order by a.attnum

-- name: has_value
-- num_nonnulls calls no function of the column's type, which any role may have made.
select num_nonnulls({column}) > 0 from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid

-- name: runs
-- Code of other roles that would run as us when a row is read, held or deleted, by the catalog alone: triggers, rules,
-- policies, views whatever their owner, and what planning computes. Of the table, its partitions and tables that
-- inherit from it: a delete reaches all.
with recursive asked as (
    select c.oid, c.relowner, c.relname, c.relnamespace from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = %(name)s
), family as (
    select oid from asked
    union
    select i.inhrelid from pg_inherits i join family on i.inhparent = family.oid
)
select array_agg(distinct concat(what, ' ', name, ' of role ', quote_ident(pg_get_userbyid(owner))))
from (
    select 'trigger' as what, quote_ident(t.tgname) as name, p.proowner as owner, false as is_in_any_case
    from family
    join pg_trigger t on t.tgrelid = family.oid
    join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & 8 = 8 and not p.prosecdef
    union all
    select 'rule', quote_ident(r.rulename), asked.relowner, false
    from asked join pg_rewrite r on r.ev_class = asked.oid
    where r.ev_type = '4' and r.ev_enabled <> 'D'
    union all
    select 'policy', quote_ident(y.polname), asked.relowner, false
    from asked join pg_policy y on y.polrelid = asked.oid
    where row_security_active(asked.oid)
    union all
    select case c.relkind when 'f' then 'foreign table' else 'view' end, quote_ident(c.relname), c.relowner, true
    from family join pg_class c on c.oid = family.oid
    where c.relkind not in ('r', 'p')
    union all
    select 'function', called.name, asked.relowner, true
    from asked join ({calls}) called on called.oid = asked.oid::bigint
) found left join asked c on true
where is_in_any_case or owner <> (select u.oid from pg_roles u where u.rolname = current_user) and not {is_engines}

-- name: refuse_views
-- Until the transaction ends or allow_views: a table may have become a view since the catalog was read.
-- Servers older than August 2024 lack the setting.
select set_config(name, 'view', true) from pg_settings where name = 'restrict_nonsystem_relation_kind'

-- name: allow_views
-- The session's former value: triggers of the table may well read a view.
select set_config(name, reset_val, true) from pg_settings where name = 'restrict_nonsystem_relation_kind'

-- name: set_aside
-- Archived as a success, and only then marked as discarded: nobody is notified of a death that did not happen.
-- resolved_at equals died_at, which marks a message that never died.
update messages.message_archive a
set result = 'rejected', resolution = 'discarded', resolved_by = %(who)s, resolved_at = a.died_at, operation = %(operation)s {fingerprint}
from rows from (unnest(%(row_ids)s::uuid[]), unnest(%(fingerprints)s::text[])) as aside (row_id, fingerprint)
where a.id = any (%(ids)s::integer[]) and a.row_id = aside.row_id

-- name: note_former
-- By the token of its retry: anybody may send a message with the same id.
insert into messages.archive_event (archive_id, who, verb, operation, target)
select a.id, %(who)s, %(verb)s, %(operation)s, a.queue
from unnest(%(message_ids)s::text[], %(tokens)s::uuid[]) as aside (message_id, token)
join messages.message_archive a on a.message_id = aside.message_id and a.retry_token = aside.token
where a.state = 'retried'

-- name: fingerprint
-- Part of set_aside.
, fingerprint = aside.fingerprint

-- name: into_queue
-- One statement deletes and inserts, so that no body passes through the process; the target assigns seq.
with gone as (
    delete from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid returning {columns}
)
insert into {target} ({columns}) select {columns} from gone

-- name: due_now
-- As the mover of due messages does it. An id that is in the queue already would be refused; the sender's is in the headers.
with gone as (
    delete from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid returning id, headers, body
)
insert into {target} (id, headers, body)
select case when exists (select from {target} there where there.id = gone.id) then gen_random_uuid() else gone.id end,
    headers, body
from gone

-- name: stays
-- Waits for a session that has the row locked, so that the answer is what became of it, not what it was before.
select id from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update

-- name: moved
-- By its event, which was committed with it: the newest, in case a row with this id was moved before.
select max(a.id) from messages.message_archive a join messages.archive_event e on e.archive_id = a.id
where a.row_id = %(id)s::uuid and e.verb = %(verb)s and e.who = %(who)s

-- name: is_there
-- Why nothing was taken: a locked row is still visible.
select exists (select from {table} where id = %(id)s::uuid)
