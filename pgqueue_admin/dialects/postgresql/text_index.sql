-- name: document
-- What the index holds of a message: all that archive_search reads of it, as one text.
-- Bytes that are not ASCII are spelled as octal numbers, so that no encoding can fail. A message above 250 kB is held
-- as a mark by which every search finds it, and is then read as it is, for indexing it would hold up whoever archives
-- it. Every function in it is immutable; it changes only together with the index's name.
case when coalesce(octet_length(headers), 0)::bigint + coalesce(octet_length(body), 0)::bigint
        + coalesce(octet_length(exception_message), 0)::bigint
        + case kind when 'lease' then octet_length(message::text)::bigint else 0::bigint end <= 250000
    then coalesce(exception_message, '') || ' ' || coalesce(exception_type, '') || ' ' || coalesce(message_type, '') || ' '
        || coalesce(message_id, '') || ' ' || coalesce(row_id::text, '') || ' ' || coalesce(headers, '') || ' '
        || coalesce(case kind when 'lease' then message::text else encode(body, 'escape') end, '')
    else 'pgqueue0large0message' end

-- name: facts
-- All that decides what is done about the index.
-- Only superusers create operator classes: the extension's own is found by its membership, in whatever schema.
-- `others_create`: who else may create in its schema, or in ours where it is not installed.
select
    current_user::text as role,
    exists (select from pg_catalog.pg_available_extensions where name = 'pg_trgm') as is_available,
    home.nspname::text as home,
    exists (
        select from aclexplode(coalesce(place.nspacl, acldefault('n', place.nspowner))) held
        where held.privilege_type = 'CREATE' and held.grantee <> place.nspowner) as others_create,
    pg_get_userbyid(archive.relowner)::text as owner,
    pg_has_role(current_user, archive.relowner, 'USAGE') as is_owner,
    pg_total_relation_size(archive.oid) - coalesce(pg_relation_size(index.indexrelid), 0) as archive_bytes,
    coalesce(pg_relation_size(index.indexrelid), 0) as index_bytes,
    index.indexrelid is not null as is_there,
    coalesce(index.indisvalid and index.indisready, false) as is_valid
from pg_catalog.pg_class archive
left join pg_catalog.pg_index index
    on index.indrelid = archive.oid and index.indexrelid = to_regclass('messages.message_archive_text')
left join lateral (
    select class.opcnamespace
    from pg_catalog.pg_extension extension
    join pg_catalog.pg_depend held on held.refobjid = extension.oid and held.refclassid = 'pg_catalog.pg_extension'::regclass
        and held.classid = 'pg_catalog.pg_opclass'::regclass and held.deptype = 'e'
    join pg_catalog.pg_opclass class on class.oid = held.objid
    where extension.extname = 'pg_trgm' and class.opcname = 'gin_trgm_ops'
) found on true
left join pg_catalog.pg_namespace home on home.oid = found.opcnamespace
join pg_catalog.pg_namespace place on place.oid = coalesce(home.oid, archive.relnamespace)
where archive.oid = to_regclass('messages.message_archive')

-- name: create_extension
-- Beside the engine's tables, where nobody else creates: never in whatever schema the path has first.
create extension if not exists pg_trgm schema messages

-- name: make_sample
-- Columns as in the archive, for the same document.
create temporary table text_sample (
    place integer, kind text, message jsonb, headers text, body bytea, exception_message text, exception_type text,
    message_type text, message_id text, row_id uuid
) on commit drop

-- name: sample
-- By ids from some blocks, so that large texts are read only of rows that are kept.
-- The document of a message above 250 kB is a mark: only as much is copied as shows that, for whole bodies may fill the
-- disk.
with found as materialized (
    select id from messages.message_archive tablesample system (%(percent)s::double precision)
), kept as materialized (
    select id from found order by random() limit %(most)s
)
insert into pg_temp.text_sample
select row_number() over (), a.kind, a.message, left(a.headers, 250001), substring(a.body from 1 for 250001),
    left(a.exception_message, 250001), a.exception_type, a.message_type, a.message_id, a.row_id
from kept join messages.message_archive a on a.id = kept.id

-- name: blocks
-- The number of blocks, for the share that is sampled.
select pg_relation_size('messages.message_archive') / current_setting('block_size')::bigint

-- name: sampled_of
-- How many messages the sampled blocks hold, from which the whole is estimated.
select count(*) from messages.message_archive tablesample system (%(percent)s::double precision)

-- name: index_sample
-- Of the first rows up to a number: two sizes tell what a further message adds, apart from an index's fixed cost.
create index {name} on pg_temp.text_sample using gin (({document}) {home}.gin_trgm_ops) where place <= {most}

-- name: sample_size
-- In bytes.
select pg_relation_size(to_regclass(%(name)s))

-- name: create
-- Nobody who archives waits for it.
-- Word frequencies are not collected: that would read all bodies of a sample at each analyze, and the planner uses the
-- index without them.
create index concurrently message_archive_text on messages.message_archive using gin (({document}) {home}.gin_trgm_ops)

-- name: count_no_words
-- See create.
alter index messages.message_archive_text alter column 1 set statistics 0

-- name: drop
-- Also one left by an interrupted build, which costs each insert and answers no query.
drop index concurrently if exists messages.message_archive_text

-- name: take_turn
-- One session builds or drops it. A session's lock, since a concurrent build is no transaction.
select pg_try_advisory_lock(7217463802136)

-- name: end_turn
-- See take_turn.
select pg_advisory_unlock(7217463802136)

-- name: usable
-- The provider of the database's collation, where the index answers searches: others than libc fold some letters
-- differently from the index. Servers before 15 know no other. No row where no index is complete, or where a setting
-- makes indexes of its kind leave rows out.
select coalesce(to_jsonb(here) ->> 'datlocprovider', 'c') as provider
from pg_catalog.pg_index index, pg_catalog.pg_database here
where index.indexrelid = to_regclass('messages.message_archive_text') and index.indisvalid and index.indisready
    and here.datname = current_database() and current_setting('gin_fuzzy_search_limit') = '0'

-- name: chosen
-- A number of possible matches, by the index alone: never by reading the archive where it is gone meanwhile.
select a.id from messages.message_archive a
where {within} and exists (
    select from pg_catalog.pg_index i
    where i.indexrelid = to_regclass('messages.message_archive_text') and i.indisvalid and i.indisready
        and current_setting('gin_fuzzy_search_limit') = '0')
limit %(most)s

-- name: in_index
-- Part of a condition, as in_lane of archive_search.
a.id = any (array{within})

-- name: holds
-- Ignoring case, for which the index has one entry: more bodies may match than do, and are compared again.
({within}) ilike %(like)s::text

-- name: is_large
-- See document.
({within}) ilike '%%pgqueue0large0message%%'

-- name: look
-- The index's matches are found first, by it alone; where they are too many, nothing is read.
with chosen as materialized ({chosen})
select (select count(*) from chosen) as read,
    array(
        select a.id from messages.message_archive a
        where (select count(*) from chosen) <= %(most)s and a.id = any (array(select id from chosen)) and {columns} and {texts}
    ) as found
