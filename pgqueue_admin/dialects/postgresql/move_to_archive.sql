-- name: hold
-- Exactly this row, if nobody has it in hand: a locked one is skipped, so the act never waits for a handler that may not end.
-- Of the body only whether there is one: it stays in the database.
select tableoid::bigint as part, ctid::text as place, id::text, seq,
    coalesce(expires <= now() at time zone 'utc', false) as expired, headers,
    case when body is not null then ''::bytea end as body
from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update skip locked

-- name: hold_delayed
-- As hold, of a table of delayed messages: these have no seq, and one that was delayed anew is another.
select tableoid::bigint as part, ctid::text as place, id::text, 0 as seq, false as expired, headers,
    case when body is not null then ''::bytea end as body
from {table} where id = %(id)s::uuid and due = %(due)s::timestamptz for update skip locked

-- name: other_columns
-- What a table has beside those that are moved, by the catalog; what is generated comes by itself wherever the row goes.
select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(name)s and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = '' and a.attname <> all(%(moved)s::text[])
order by a.attnum

-- name: has_value
-- Counting what is not null calls no function of the column's type, which may be anybody's.
select num_nonnulls({column}) > 0 from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid

-- name: runs
-- What of another role would run as ours when a row is deleted: triggers, rules and policies, by the catalog alone.
with asked as (
    select c.oid, c.relowner from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = %(name)s and c.relkind in ('r', 'p')
)
select array_agg(distinct concat(what, ' ', quote_ident(name), ' of role ', quote_ident(pg_get_userbyid(owner))))
from (
    select 'trigger' as what, t.tgname as name, p.proowner as owner
    from asked
    join pg_trigger t on t.tgrelid = asked.oid or t.tgrelid in (select relid from pg_partition_tree(asked.oid))
    join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & 8 = 8 and not p.prosecdef
    union all
    select 'rule', r.rulename, asked.relowner from asked join pg_rewrite r on r.ev_class = asked.oid
    where r.ev_type = '4' and r.ev_enabled <> 'D'
    union all
    select 'policy', y.polname, asked.relowner from asked join pg_policy y on y.polrelid = asked.oid
    where row_security_active(asked.oid)
) found
where owner <> (select u.oid from pg_roles u where u.rolname = current_user)

-- name: set_aside
-- Archived as if it had succeeded, and only then said to be discarded: nobody is told of a death that there was none of.
-- Both times are one, by which it is known as a message that never died.
update messages.message_archive a
set result = 'rejected', became = 'discarded', became_by = %(who)s, became_at = a.died_at {fingerprint}
where a.id = %(id)s

-- name: fingerprint
-- Part of set_aside.
, fingerprint = %(fingerprint)s

-- name: into_queue
-- One statement takes it out and puts it in, so that no body passes through the process; seq is the other table's.
with gone as (
    delete from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid returning {columns}
)
insert into {target} ({columns}) select {columns} from gone

-- name: due_now
-- As the mover of due messages does it. An id that lies in the queue already would be refused; the sender's is in the headers.
with gone as (
    delete from {table} where ctid = %(place)s::tid and tableoid = %(part)s::bigint::oid returning id, headers, body
)
insert into {target} (id, headers, body)
select case when exists (select from {target} there where there.id = gone.id) then gen_random_uuid() else gone.id end,
    headers, body
from gone

-- name: stays
-- Waits for whoever has it in hand, so that the answer is what became of it and not what it was before.
select id from {table} where id = %(id)s::uuid and seq = %(seq)s::bigint for update

-- name: moved
-- By its event, which was committed with it: the newest, should a row with this id have been moved before.
select max(a.id) from messages.message_archive a join messages.archive_event e on e.archive_id = a.id
where a.row_id = %(id)s::uuid and e.verb = %(verb)s and e.who = %(who)s

-- name: is_there
-- Why nothing was taken: a row that is in hand can still be seen.
select exists (select from {table} where id = %(id)s::uuid)
