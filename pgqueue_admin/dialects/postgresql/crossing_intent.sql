-- name: are_kept
-- Tables older than version 9 have none; and grants made table by table do not include a new table.
select coalesce(has_table_privilege(to_regclass('messages.crossing'), 'select')
    and has_table_privilege(to_regclass('messages.crossing_put'), 'select'), false)

-- name: can_carry
-- Likewise crossing_copy, whose contents replace the archive's; a role without it still leaves alone what is on its way.
select coalesce(has_table_privilege(to_regclass('messages.crossing_copy'), 'select'), false)

-- name: put_back
-- Archived messages are to go into another database; each has one crossing at most.
with made as (
    insert into messages.crossing (alias, operation, who, restores)
    values (%(alias)s, %(operation)s, %(who)s, %(restores)s) returning id
)
insert into messages.crossing_put (archive_id, crossing, position, target_schema, target_table, row_id, is_redirected)
select put.archive_id, made.id, put.position, put.target_schema, put.target_table, gen_random_uuid(), put.is_redirected
from made, rows from (
    unnest(%(ids)s::integer[]), unnest(%(schemas)s::text[]), unnest(%(tables)s::text[]), unnest(%(redirected)s::boolean[])
) with ordinality as put (archive_id, target_schema, target_table, is_redirected, position)
returning crossing

-- name: take_back
-- Archived messages that were put into another database and wait there are to be taken out, by their rows there.
with made as (
    insert into messages.crossing (alias, takes_in, operation, who) values (%(alias)s, true, %(operation)s, %(who)s) returning id
)
insert into messages.crossing_put (archive_id, crossing, position, target_schema, target_table, row_id, is_redirected)
select put.archive_id, made.id, put.position, put.target_schema, put.target_table, put.row_id, false
from made, rows from (
    unnest(%(ids)s::integer[]), unnest(%(schemas)s::text[]), unnest(%(tables)s::text[]), unnest(%(row_ids)s::uuid[])
) with ordinality as put (archive_id, target_schema, target_table, row_id, position)
returning crossing

-- name: takes_back
-- Whether it takes out what a retry has put there: archived messages, which are not copied.
select c.takes_in and exists (select from messages.crossing_put p where p.crossing = c.id)
from messages.crossing c where c.id = %(id)s

-- name: take_in
-- Rows of a queue there are about to be copied here. With restores they go into the bin.
insert into messages.crossing (alias, takes_in, operation, who, restores) values (%(alias)s, true, %(operation)s, %(who)s, %(restores)s)
returning id, alias, takes_in, operation, who, restores, begun_at, mark, not_known

-- name: copy
-- One row, exactly as it is stored there.
insert into messages.crossing_copy (crossing, found_schema, found_table, row_id, expires, headers, body, number)
values (%(crossing)s, %(found_schema)s, %(found_table)s, %(id)s, %(expires)s, %(headers)s, %(body)s, %(seq)s)

-- name: lock
-- A second caller waits, and finds that it is over.
select id from messages.crossing where id = %(id)s for update

-- name: copies
-- What was taken out, in the order of its queue; bodies stay in the database.
select tableoid::bigint as part, ctid::text as place, row_id as id, number as seq, headers, found_schema, found_table,
    coalesce(expires <= now() at time zone 'utc', false) as expired, case when body is not null then ''::bytea end as body
from messages.crossing_copy where crossing = %(id)s order by number

-- name: open
-- Crossings whose outcome is still to be found out, oldest first.
select id, alias, takes_in, operation, who, restores, begun_at, mark, not_known from messages.crossing
where not_known is null and (%(operation)s::bigint is null or operation = %(operation)s)
    and (%(alias)s::text is null or alias = %(alias)s)
order by id limit %(limit)s

-- name: not_known
-- Crossings on which a person decides.
select id, alias, takes_in, operation, who, restores, begun_at, mark, not_known from messages.crossing
where not_known is not null and (%(operation)s::bigint is null or operation = %(operation)s) order by id limit %(limit)s

-- name: unsettled
-- Per other database, crossings begun long ago: messages on which a person decides, or still asked about; since when.
select c.alias, min(c.begun_at) as begun_at, extract(epoch from clock_timestamp() - min(c.begun_at))::float8 as seconds,
    coalesce(sum(m.number) filter (where c.not_known is not null), 0)::bigint as undecided,
    coalesce(sum(m.number) filter (where c.not_known is null), 0)::bigint as going
from messages.crossing c cross join lateral (
    select (select count(*) from messages.crossing_put p where p.crossing = c.id and p.why is null)
        + (select count(*) from messages.crossing_copy k where k.crossing = c.id
            and not exists (select from messages.crossing_put p where p.crossing = c.id and p.row_id = k.row_id)) as number
) m
where c.begun_at < clock_timestamp() - %(late)s::interval
group by c.alias order by c.alias

-- name: rows
-- Row ids by queue, by which a person finds the messages there.
select schema, "table", array_agg(row_id::text order by row_id) as ids from (
    select p.target_schema as schema, p.target_table as "table", p.row_id
    from messages.crossing_put p where p.crossing = %(id)s and p.why is null
    union all
    select c.found_schema, c.found_table, c.row_id from messages.crossing_copy c where c.crossing = %(id)s
        and not exists (select from messages.crossing_put p where p.crossing = c.crossing and p.row_id = c.row_id)
) found group by schema, "table" order by schema, "table"

-- name: get
-- Its present state.
select id, alias, takes_in, operation, who, restores, begun_at, mark, not_known from messages.crossing where id = %(id)s

-- name: hold
-- One process works on it: until it releases the lock, or its session ends.
select pg_try_advisory_lock(hashtext('pgqueue crossing'), (%(id)s::bigint %% 2147483647)::integer)

-- name: let_go
-- Releases it.
select pg_advisory_unlock(hashtext('pgqueue crossing'), (%(id)s::bigint %% 2147483647)::integer)

-- name: let_all_go
-- Releases all that a session holds: it has no other locks of its own.
select pg_advisory_unlock_all()

-- name: durable
-- What the other database learns after this commit may not be undone here by a crash.
select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'

-- name: puts
-- In the order of their act. is_edited: what goes over differs from the archive's.
select p.archive_id, p.target_schema, p.target_table, p.row_id, p.is_redirected, p.why,
    exists (select from messages.crossing_copy c where c.crossing = p.crossing and c.row_id = p.row_id) as is_edited
from messages.crossing_put p where p.crossing = %(id)s order by p.position

-- name: content
-- What goes over, one message at a time: a body may be large. Of an edited one the new headers, and the body if edited.
select coalesce(c.headers, a.headers) as headers, coalesce(c.body, a.body) as body, c.row_id is not null as is_edited
from messages.message_archive a
left join messages.crossing_copy c on c.crossing = %(crossing)s and c.row_id = %(row_id)s
where a.id = %(id)s and a.kind = 'transport'

-- name: put_typed
-- A message that a person typed is to go over: it is stored nowhere else.
with made as (insert into messages.crossing (alias, who) values (%(alias)s, %(who)s) returning id)
insert into messages.crossing_copy (crossing, found_schema, found_table, row_id, headers, body, number)
select made.id, %(schema)s, %(table)s, gen_random_uuid(), %(headers)s, %(body)s, 1 from made
returning crossing

-- name: move
-- Rows of another database are to go into another queue there. Their contents stay there, so nothing is copied.
with made as (insert into messages.crossing (alias, who) values (%(alias)s, %(who)s) returning id)
insert into messages.crossing_copy (crossing, found_schema, found_table, row_id, number)
select made.id, %(schema)s, %(table)s, moved.row_id, moved.number
from made, rows from (unnest(%(row_ids)s::uuid[]), unnest(%(numbers)s::bigint[])) as moved (row_id, number)
returning crossing

-- name: typed
-- Likewise, the contents that go over; moved rows have none.
select c.found_schema as schema, c.found_table as "table", c.row_id, c.headers, c.body
from messages.crossing_copy c where c.crossing = %(id)s and c.headers is not null
    and not exists (select from messages.crossing_put p where p.crossing = c.crossing and p.row_id = c.row_id)

-- name: is_typed
-- Whether what goes over is neither an archived message nor in a queue there.
select not c.takes_in and not exists (select from messages.crossing_put p where p.crossing = c.id)
    and not exists (select from messages.crossing_copy m where m.crossing = c.id and m.headers is null)
from messages.crossing c where c.id = %(id)s

-- name: is_move
-- Whether rows go from one queue there into another, without the archive.
select not c.takes_in and exists (select from messages.crossing_copy m where m.crossing = c.id and m.headers is null)
from messages.crossing c where c.id = %(id)s

-- name: put_edited
-- What goes over in place of the archive's; a null body: the archive's goes.
insert into messages.crossing_copy (crossing, found_schema, found_table, row_id, headers, body, number)
select p.crossing, p.target_schema, p.target_table, p.row_id, edited.headers, edited.body, p.position
from unnest(%(ids)s::integer[], %(headers)s::text[], %(bodies)s::bytea[]) as edited (archive_id, headers, body)
join messages.crossing_put p on p.archive_id = edited.archive_id

-- name: mark
-- Once, and only while nobody has found that it never left.
update messages.crossing set mark = %(mark)s where id = %(id)s and mark is null

-- name: refuse
-- Messages that the other database refused: stored with the mark, so that it is known without the process that got the answer.
update messages.crossing_put p set why = refused.why
from unnest(%(ids)s::integer[], %(whys)s::text[]) as refused (archive_id, why)
where p.crossing = %(id)s and p.archive_id = refused.archive_id

-- name: doubt
-- Nobody can find out any more.
update messages.crossing set not_known = %(why)s where id = %(id)s and not_known is null

-- name: undo
-- It never arrived: its messages are where they were. Only with the mark as found: another process may be about to set it.
delete from messages.crossing where id = %(id)s and mark is not distinct from %(mark)s

-- name: end
-- It arrived. Whoever deletes it records the result in the same transaction.
delete from messages.crossing where id = %(id)s

-- name: reopen
-- Items that were given up as unknown, and whose outcome is known now.
update messages.operation_item set outcome = null, why = null, at = null
where operation = %(operation)s and archive_id = any (%(ids)s::integer[]) and outcome = 'failed'

-- name: is_open
-- Whether something of an operation is on its way.
select exists (select from messages.crossing where operation = %(operation)s and not_known is null)
