-- The engine's tables (archive, lease queue, operation items), version 13, where none of them is.
-- Made by `manage.py engine_schema --print`. Whoever runs it owns them: psql -v ON_ERROR_STOP=1 -f lease-queue.sql

begin;

select pg_advisory_xact_lock(7217463802135);

create schema if not exists messages;

create type public.message_status as enum ('success', 'failed', 'rejected', 'lock_expired');

create table if not exists messages.message (
    id serial primary key,
    created_at timestamp not null default (now() at time zone 'utc'),
    message jsonb not null,
    lock_expires_at timestamp default null
);
create index if not exists idx_lock_expires_at on messages.message (lock_expires_at);
create table if not exists messages.message_archive (
    id serial primary key,
    created_at timestamp not null,
    archived_at timestamp not null default (now() at time zone 'utc'),
    message jsonb not null,
    result public.message_status not null,
    handled_by varchar(50) not null,
    details text default null
);

alter table messages.message_archive
    add column seq bigint,
    add column xid xid8 not null default pg_current_xact_id(),
    add column kind text not null default 'lease' check (kind in ('lease', 'transport', 'control')),
    add column queue text,
    add column message_id text,
    add column message_type text,
    add column headers text,
    add column body bytea,
    add column row_id uuid,
    add column expires timestamp,
    add column exception_type text,
    add column exception_message text,
    add column stack_trace text,
    add column failed_queue text,
    add column target_schema text,
    add column target_table text,
    add column retry_blocked_reason text,
    add column ingested_from text,
    add column endpoint text,
    add column machine text,
    add column attempts integer,
    add column sent_at timestamptz,
    add column died_at timestamptz not null default now(),
    add column resolution text check (resolution in ('retried', 'succeeded', 'dead_again', 'discarded')),
    add column resolved_by text,
    add column resolved_at timestamptz,
    add column ended_at timestamptz,
    add column operation bigint,
    add column state text not null generated always as
        (coalesce(resolution, case when result = 'success' then 'succeeded' else 'dead' end)) stored;
create unique index message_archive_seq on messages.message_archive (seq);
create index message_archive_xid on messages.message_archive (xid);
create index message_archive_died on messages.message_archive (died_at desc, seq desc);
create index message_archive_state on messages.message_archive (state, died_at desc, seq desc);
create index message_archive_queue on messages.message_archive (queue, died_at desc, seq desc);
create index message_archive_exception on messages.message_archive (exception_type, died_at desc, seq desc)
    where exception_type is not null;
create index message_archive_dead on messages.message_archive (queue, exception_type, died_at) where state = 'dead';
create index message_archive_message_id on messages.message_archive (message_id) where message_id is not null;
create index message_archive_row_id on messages.message_archive (row_id) where row_id is not null;
create index message_archive_operation on messages.message_archive (operation) where operation is not null;

alter table messages.message_archive
    alter column seq set not null,
    alter column seq add generated always as identity;
select setval(pg_get_serial_sequence('messages.message_archive', 'seq'), 1 + greatest(
    0, (select max(id) from messages.message_archive),
    pg_sequence_last_value(pg_get_serial_sequence('messages.message_archive', 'id')::regclass)), false);

create table messages.archive_event (
    id bigint primary key generated always as identity,
    archive_id integer not null,
    at timestamptz not null default clock_timestamp(),
    who text not null,
    verb text not null,
    operation bigint,
    target text,
    xid xid8 not null default pg_current_xact_id()
);
create index archive_event_archive_id on messages.archive_event (archive_id);
create index archive_event_operation on messages.archive_event (operation) where operation is not null;
create index archive_event_xid on messages.archive_event (xid);
create table messages.operation_item (
    operation bigint not null,
    position integer not null,
    archive_id integer not null,
    queue text,
    outcome text check (outcome in ('done', 'skipped', 'failed')),
    why text,
    previous_actor text,
    previous_at timestamptz,
    target text,
    at timestamptz,
    primary key (operation, position),
    unique (operation, archive_id)
);
create index operation_item_open on messages.operation_item (operation, position) where outcome is null;
create index operation_item_archive_id on messages.operation_item (archive_id);
create view messages.message_dead as select * from messages.message_archive where state = 'dead';
create table messages.engine_schema (
    version integer not null,
    installed_at timestamptz not null default now(),
    installed_by text not null default current_user,
    only_row boolean primary key default true check (only_row)
);

-- Each keeps its ledger in a database of its own. No console prunes what another one has not read. Transaction ids are
-- valid in one cluster.
create table messages.history_reader (
    reader uuid primary key,
    name text not null,
    cluster text not null,
    snapshot pg_snapshot not null,
    events_snapshot pg_snapshot not null,
    events_before timestamptz,
    said_at timestamptz not null
);

alter table messages.message_archive add column if not exists retry_token uuid;

create or replace function public.dead_message_nofify() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_catalog.pg_notify('dead_message', new.id::text);
    raise warning using message = pg_catalog.concat(
        'dead message: archive id ', new.id,
        ', result ', new.result,
        ', message id ', messages.one_word(new.message_id),
        ', queue ', messages.one_line(coalesce(new.queue, '"messages"."message"')));
    return new;
end $$;

create or replace function public.new_message_nofify() returns trigger language plpgsql as $$
begin
    perform pg_catalog.pg_notify('new_message', new.id::text);
    return new;
end $$;
create or replace function messages.one_line(said text) returns text language sql immutable as
    $$ select pg_catalog.left(pg_catalog.regexp_replace(said, '[[:cntrl:]]', '?', 'g'), 300) $$;
create or replace function messages.one_word(said text) returns text language sql immutable as
    $$ select coalesce(nullif(pg_catalog.regexp_replace(messages.one_line(said), '[\s,]', '_', 'g'), ''), '-') $$;
create or replace function messages.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'messages.archive_event is append-only';
end $$;
create or replace trigger new_message_trigger after insert on messages.message
    for each row execute function public.new_message_nofify();
create or replace trigger dead_message_trigger after insert on messages.message_archive
    for each row when (new.result <> 'success') execute function public.dead_message_nofify();
create or replace trigger archive_event_append_only before update or delete on messages.archive_event
    for each row execute function messages.refuse_change();

-- A token is valid while token_expires_at equals lock_expires_at: a client that locks without a token takes the message
-- over. The defaults do not depend on a session's zone, also in adopted tables.
alter table messages.message
    alter column created_at set default (now() at time zone 'utc'),
    add column attempts integer not null default 0,
    add column available_at timestamptz not null default now(),
    add column lock_token uuid,
    add column token_expires_at timestamp,
    add column release_expired boolean not null default false;
create index message_available on messages.message (available_at, id) where lock_expires_at is null;
create table messages.notify_round (
    after integer not null,
    only_row boolean primary key default true check (only_row)
);
insert into messages.notify_round (after) values (0);
alter table messages.message_archive
    alter column archived_at set default (now() at time zone 'utc'),
    add column second_ending_of integer;
create index message_archive_endings on messages.message_archive (created_at) where kind = 'lease' and message_id is not null;
create or replace view messages.message_dead as select * from messages.message_archive where state = 'dead';

-- Where they deleted none, somebody else has ended the message before, and the row names the first ending. Never
-- refuses anything.
create or replace function messages.note_deleted() returns trigger language plpgsql as $$
begin
    perform pg_catalog.set_config('messages.deleted', pg_catalog.concat(old.id, ' ', old.created_at), true);
    return old;
end $$;
create or replace function messages.mark_ending() returns trigger language plpgsql as $$
declare
    deleted text := pg_catalog.current_setting('messages.deleted', true);
begin
    if pg_catalog.concat(pg_catalog.split_part(deleted, ' ', 1), ' ', new.created_at) = deleted then
        new.message_id := pg_catalog.split_part(deleted, ' ', 1);
        perform pg_catalog.set_config('messages.deleted', '', true);
        return new;
    end if;
    select min(a.id) into new.second_ending_of from messages.message_archive a
    where a.kind = 'lease' and a.message_id is not null and a.created_at = new.created_at and a.message = new.message;
    if new.second_ending_of is not null and exists (
            select from messages.message m where m.created_at = new.created_at and m.message = new.message) then
        new.second_ending_of := null;
    end if;
    return new;
exception when others then
    return new;
end $$;
create or replace trigger lease_note_deleted after delete on messages.message
    for each row when (old.lock_token is null or old.token_expires_at is distinct from old.lock_expires_at)
    execute function messages.note_deleted();
create or replace trigger lease_mark_ending before insert on messages.message_archive
    for each row when (new.kind = 'lease' and new.message_id is null) execute function messages.mark_ending();

create or replace function messages.note_retried() returns trigger language plpgsql as $$
declare
    ended integer;
    how text := 'success';
    by_whom text := 'lease queue';
begin
    -- no max(), for which the planner might walk the archive from its end
    ended := (
        select (array_agg(a.id order by a.id desc))[1] from messages.message_archive a
        where a.kind = 'lease' and a.message_id = old.id::text and a.created_at = old.created_at);
    if ended is null then
        if old.lock_token is null or old.token_expires_at is distinct from old.lock_expires_at then
            return null;
        end if;
    else
        how := (select a.result::text from messages.message_archive a where a.id = ended);
        by_whom := (select a.handled_by from messages.message_archive a where a.id = ended);
    end if;
    with former as (
        update messages.message_archive a
        set resolution = case how when 'success' then 'succeeded' else 'dead_again' end, ended_at = pg_catalog.clock_timestamp()
        where a.id = old.retried_from and a.retried_as = old.id and a.state = 'retried'
        returning a.id, a.operation, a.queue
    )
    insert into messages.archive_event (archive_id, who, verb, operation, target)
    select id, case how when 'success' then by_whom else 'archive' end,
        case how when 'success' then 'succeeded' else 'died again' end, operation, queue
    from former;
    return null;
exception when others then
    raise warning using message = pg_catalog.concat(
        'retried message: archive id ', old.retried_from, ' ended as message id ', old.id, ', not noted: ', sqlerrm);
    return null;
end $$;

-- Whoever ends it, at the commit its former row records how it ended: by then the new archive row exists, whichever of
-- the two was written first. Costs a message that was never retried nothing, and refuses nothing.
alter table messages.message add column retried_from integer;
alter table messages.message_archive add column retried_as integer;
create constraint trigger lease_note_retried after delete on messages.message deferrable initially deferred
    for each row when (old.retried_from is not null) execute function messages.note_retried();
create or replace view messages.message_dead as select * from messages.message_archive where state = 'dead';

-- Each is committed with its archive row: nobody has to find out which rows are new. Without a foreign key: the
-- original's script truncates the archive. The function may write where the archiving role may not, and does nothing
-- else.
create table messages.dead_consumer (
    since timestamptz not null default now(),
    only_row boolean primary key default true check (only_row)
);
create table messages.dead_delivery (
    archive_id integer primary key,
    given integer not null default 0,
    available_at timestamptz not null default now()
);
create index dead_delivery_available on messages.dead_delivery (available_at);
create or replace function messages.deliver_dead() returns trigger language plpgsql security definer as $$
begin
    if not exists (select from messages.dead_consumer) then
        return null;
    end if;
    begin
        insert into messages.dead_delivery (archive_id) values (new.id)
        on conflict (archive_id) do update set given = 0, available_at = pg_catalog.now();
    exception when others then
        raise warning using message = pg_catalog.concat('dead message: archive id ', new.id, ', not delivered: ', sqlerrm);
    end;
    return null;
end $$;
revoke all on function messages.deliver_dead() from public;
create or replace trigger lease_deliver_dead after insert on messages.message_archive
    for each row when (new.result <> 'success' and new.kind = 'lease' and new.second_ending_of is null)
    execute function messages.deliver_dead();

-- A role that may create in a schema of their search path could make them run its code. Functions that somebody has
-- dropped are left out.
do $$
declare
    each regprocedure;
begin
    for each in
        select p.oid from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
        where n.nspname = 'public' and p.proname in ('new_message_nofify', 'dead_message_nofify') and p.pronargs = 0
            or n.nspname = 'messages' and p.proname in ('one_line', 'one_word', 'refuse_change', 'note_deleted', 'mark_ending', 'note_retried',
                'deliver_dead')
    loop
        execute pg_catalog.concat('alter function ', each, ' set search_path = pg_catalog, pg_temp');
    end loop;
end $$;

-- They are beside the queues, so that a due time is claimed and its message inserted in one transaction. A row of
-- schedule_run is a due time of the next 31 days, and later its outcome; one without an outcome is still to come.
-- Future and past due times have an index each: with one for both the planner would walk through all past ones.
create table messages.schedule (
    id bigint primary key generated always as identity,
    name text not null unique check (name <> ''),
    kind text not null check (kind in ('lease', 'transport')),
    queue_schema text,
    queue_table text,
    channel text,
    message_type text not null default '',
    headers text,
    message text not null,
    expression text not null,
    zone text not null,
    missed text not null check (missed in ('skip', 'catch_up')),
    planned_until timestamptz not null default now(),
    version integer not null default 1,
    created_at timestamptz not null default now(),
    created_by text not null,
    paused_at timestamptz,
    paused_by text,
    error text,
    error_at timestamptz,
    check (kind = 'lease' or queue_schema is not null and queue_table is not null and headers is not null)
);
create table messages.schedule_run (
    schedule bigint not null references messages.schedule on delete cascade,
    due_at timestamptz not null,
    local_due timestamp not null,
    outcome text check (outcome in ('sent', 'caught_up', 'by_hand', 'skipped', 'paused')),
    at timestamptz,
    who text,
    message_id text,
    row_id uuid,
    queue_schema text,
    queue_table text,
    primary key (due_at, schedule)
);
create index schedule_run_open on messages.schedule_run (due_at) where outcome is null;
create index schedule_run_coming on messages.schedule_run (schedule, due_at) where outcome is null;
create index schedule_run_past on messages.schedule_run (schedule, due_at) where outcome is not null;
create index schedule_run_missed on messages.schedule_run (schedule, due_at) where outcome in ('skipped', 'paused');
create table messages.schedule_look (
    at timestamptz,
    who text,
    only_row boolean primary key default true check (only_row)
);
insert into messages.schedule_look (at) values (null);

-- The second holds rows without a fingerprint: none, unless others archive.
alter table messages.message_archive add column fingerprint text;
create index message_archive_fingerprint on messages.message_archive (fingerprint, died_at desc, seq desc) include (state)
    where fingerprint is not null;
create index message_archive_no_fingerprint on messages.message_archive (id) where fingerprint is null and result <> 'success';
create or replace view messages.message_dead as select * from messages.message_archive where state = 'dead';

-- The index holds only those that may still wait there.
alter table messages.operation_item add column sent_as text, add column left_at timestamptz;
create index operation_item_sent on messages.operation_item (operation, position) where sent_as is not null and left_at is null;

-- By its mark the other database is asked for the outcome of its transaction; without one that cannot have been
-- committed. The row is deleted once the outcome is known and recorded where it belongs. If not_known is set, nobody
-- can find out any more, and a person decides. An archived message has one crossing at most.
create table messages.crossing (
    id bigint primary key generated always as identity,
    alias text not null,
    takes_in boolean not null default false,
    operation bigint,
    who text not null,
    restores boolean not null default false,
    begun_at timestamptz not null default clock_timestamp(),
    mark text,
    not_known text
);
create index crossing_operation on messages.crossing (operation) where operation is not null;
create table messages.crossing_put (
    archive_id integer primary key,
    crossing bigint not null references messages.crossing on delete cascade,
    position integer not null,
    target_schema text not null,
    target_table text not null,
    row_id uuid not null,
    is_redirected boolean not null,
    why text
);
create index crossing_put_crossing on messages.crossing_put (crossing);
create table messages.crossing_copy (
    crossing bigint not null references messages.crossing on delete cascade,
    found_schema text not null,
    found_table text not null,
    row_id uuid not null,
    expires timestamp,
    headers text,
    body bytea,
    number bigint not null -- seq there: with a queue's column names the table would be taken for one
);
create index crossing_copy_crossing on messages.crossing_copy (crossing);

alter table messages.message add column lock_holder text;

-- While there is a rule, a trigger keeps each death in the commit that archives it: a NOTIFY that nobody hears costs
-- time and nothing else. Which retry a message is, is stored by its id, so that its next death is counted. Without
-- foreign keys: the original's script truncates the archive. The function may write where the archiving role may not,
-- and does nothing else.
create table messages.lease_rule (
    id bigint primary key generated always as identity,
    message_type text not null unique,
    results text[] not null check (results <> '{}' and results <@ array['failed', 'lock_expired', 'rejected']),
    times integer not null check (times between 1 and 20),
    wait_seconds integer not null check (wait_seconds between 1 and 86400),
    who text not null,
    reason text not null default '',
    created_at timestamptz not null default now()
);
create table messages.lease_rule_dead (
    archive_id integer primary key,
    available_at timestamptz not null default now()
);
create index lease_rule_dead_available on messages.lease_rule_dead (available_at);
create table messages.lease_rule_retry (
    message_id integer primary key,
    archive_id integer not null,
    rule bigint not null,
    nth integer not null,
    at timestamptz not null default now()
);
create index lease_rule_retry_at on messages.lease_rule_retry (at);
create index lease_rule_retry_rule on messages.lease_rule_retry (rule, at);
create or replace function messages.keep_for_rules() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from messages.lease_rule) then
        insert into messages.lease_rule_dead (archive_id) values (new.id)
        on conflict (archive_id) do update set available_at = now();
    end if;
    return null;
exception when others then
    raise warning using message = concat('dead message: archive id ', new.id, ', not kept for retry rules: ', sqlerrm);
    return null;
end $$;
revoke all on function messages.keep_for_rules() from public;
create or replace trigger lease_keep_for_rules after insert on messages.message_archive
    for each row when (new.result <> 'success' and new.kind = 'lease' and new.second_ending_of is null)
    execute function messages.keep_for_rules();

-- Kept by triggers, as nothing else reports a row that somebody deletes by hand. A change is a row beside the tallies,
-- with the change's own transaction: two deaths of one cause do not wait for each other, and a count is the sum of both
-- tables. Housekeeping adds these up. A trigger for each row costs a success nothing; a statement that changes many
-- rows writes a few sums.
create table messages.failure_tally (
    fingerprint text not null,
    queue text not null,
    state text not null,
    number bigint not null,
    primary key (fingerprint, queue, state)
);
create table messages.failure_change (
    fingerprint text not null,
    queue text not null,
    state text not null,
    number bigint not null
);
create or replace function messages.count_failure() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    insert into messages.failure_change (fingerprint, queue, state, number)
    values (new.fingerprint, coalesce(new.queue, '"messages"."message"'), new.state, 1);
    return null;
end $$;
create or replace function messages.count_changed_failures() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    insert into messages.failure_change (fingerprint, queue, state, number)
    select each.fingerprint, coalesce(each.queue, '"messages"."message"'), each.state, sum(each.number)
    from (
        select b.fingerprint, b.queue, b.state, -1 as number from rows_before b where b.fingerprint is not null
        union all
        select n.fingerprint, n.queue, n.state, 1 from rows_now n where n.fingerprint is not null) as each
    group by 1, 2, 3 having sum(each.number) <> 0;
    return null;
end $$;
create or replace function messages.count_deleted_failures() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    insert into messages.failure_change (fingerprint, queue, state, number)
    select b.fingerprint, coalesce(b.queue, '"messages"."message"'), b.state, -count(*)
    from rows_before b where b.fingerprint is not null group by 1, 2, 3;
    return null;
end $$;
create or replace function messages.count_no_failures() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    delete from messages.failure_tally;
    delete from messages.failure_change;
    return null;
end $$;
revoke all on function messages.count_failure(), messages.count_changed_failures(), messages.count_deleted_failures(),
    messages.count_no_failures() from public;
create or replace trigger failure_died after insert on messages.message_archive
    for each row when (new.fingerprint is not null) execute function messages.count_failure();
create or replace trigger failure_changed after update on messages.message_archive
    referencing old table rows_before new table rows_now
    for each statement execute function messages.count_changed_failures();
create or replace trigger failure_deleted after delete on messages.message_archive
    referencing old table rows_before for each statement execute function messages.count_deleted_failures();
create or replace trigger failure_truncated after truncate on messages.message_archive
    for each statement execute function messages.count_no_failures();
alter table messages.message_archive
    enable always trigger failure_died, enable always trigger failure_changed,
    enable always trigger failure_deleted, enable always trigger failure_truncated;
create or replace function messages.recount_failures() returns bigint language sql
set search_path = pg_catalog, pg_temp as $$
    with counted as (
        select a.fingerprint, coalesce(a.queue, '"messages"."message"') as queue, a.state, count(*) as number
        from messages.message_archive a where a.fingerprint is not null group by 1, 2, 3
        union all
        select t.fingerprint, t.queue, t.state, -t.number from messages.failure_tally t
        union all
        select c.fingerprint, c.queue, c.state, -c.number from messages.failure_change c
    ), differing as (
        insert into messages.failure_change (fingerprint, queue, state, number)
        select fingerprint, queue, state, sum(number) from counted group by 1, 2, 3 having sum(number) <> 0
        returning 1
    )
    select count(*) from differing
$$;
select messages.recount_failures();

-- A function, because the table differs by schedule, and because pg_cron takes nothing but a statement. It runs with
-- the rights of its caller. One caller at a time runs a schedule, and each due time has one row: so it is sent once.
create or replace function messages.send_scheduled(
    sent messages.schedule, due timestamptz, local_due timestamp, out message_id text, out row_id uuid
) language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    to_schema text := case sent.kind when 'lease' then 'messages' else sent.queue_schema end;
    to_table text := case sent.kind when 'lease' then 'message' else sent.queue_table end;
    filled text := replace(replace(sent.message,
        '{{ due }}', to_char(due at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
        '{{ due | date }}', to_char(local_due, 'YYYY-MM-DD'));
    others text[];
    written integer;
    inserted messages.message;
begin
    -- as an insert locks it: until the commit nobody attaches anything, and what was attached before is seen by the next statement,
    -- but at other levels not
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'Nothing is sent at isolation level %, only at read committed.', current_setting('transaction_isolation');
    end if;
    execute format('lock table %I.%I in row exclusive mode', to_schema, to_table);
    others := (
        select case when c.relkind in ('r', 'p') then code.runs else array[concat(
    case c.relkind when 'f' then 'foreign table' else 'view' end, ' ', quote_ident(c.relname), ' of role ',
    quote_ident(pg_get_userbyid(c.relowner)))] end from pg_class c join pg_namespace n on n.oid = c.relnamespace cross join lateral (-- 8 delete, 16 update), by the catalog alone. Triggers and rules; and functions, operators and domains that defaults, generated columns,
-- checks, indexes, partition keys, policies and types of columns lead to. To a domain its owner adds a check when he likes, and
-- to a type of his a cast.
with recursive family as (
    select array(select c.oid union select relid from pg_partition_tree(c.oid)) as oids
), reached as (
    select part.what, part.name, part.classid::oid as classid, part.objid
    from family cross join lateral (
        select 'default of column' as what, a.attname as name, 'pg_attrdef'::regclass as classid, f.oid as objid
        from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where f.adrelid = any (family.oids)
        union all
        select 'check', k.conname, 'pg_constraint'::regclass, k.oid from pg_constraint k where k.conrelid = any (family.oids)
        union all
        select 'index', x.relname, 'pg_class'::regclass, i.indexrelid
        from pg_index i join pg_class x on x.oid = i.indexrelid where i.indrelid = any (family.oids)
        union all
        select 'partition key', x.relname, 'pg_class'::regclass, x.oid
        from pg_class x where x.oid = any (family.oids) and x.relkind = 'p'
        union all
        select 'policy', y.polname, 'pg_policy'::regclass, y.oid
        from pg_policy y where y.polrelid = c.oid and row_security_active(c.oid)
        union all
        select 'type of column', a.attname, 'pg_type'::regclass, a.atttypid
        from pg_attribute a where a.attrelid = any (family.oids) and a.attnum > 0 and a.atttypid >= 16384
    ) part
    union
    select reached.what, reached.name, further.classid, further.objid
    from reached left join pg_type t on reached.classid = 'pg_type'::regclass and t.oid = reached.objid
    cross join lateral (
        select d.refclassid as classid, d.refobjid as objid from pg_depend d
        where d.classid = reached.classid and d.objid = reached.objid and case d.refclassid
            when 'pg_proc'::regclass then coalesce(t.typtype, 'd') = 'd'
            when 'pg_operator'::regclass then true
            when 'pg_type'::regclass then true
            when 'pg_class'::regclass then t.oid is not null end
        union all -- as a list, of which the planner expects few
        select 'pg_constraint'::regclass, of_domain
        from unnest(array(select k.oid from pg_constraint k where k.contypid = t.oid)) as of_domain
    ) further
    -- these and not the other two; and any number: of both the planner expects few, and compiles nothing that runs for a millisecond
    where reached.classid = any (array['pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_class'::regclass,
        'pg_policy'::regclass, 'pg_type'::regclass]::oid[]) and reached.objid between 1 and 4294967295
)
select array_agg(distinct concat(what, ' ', quote_ident(name), ' of role ', quote_ident(pg_get_userbyid(owner)))) as runs
from (
    select 'trigger' as what, t.tgname as name, p.proowner as owner
    from family join pg_trigger t on t.tgrelid = any (family.oids) join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & 4 <> 0 and not p.prosecdef
    union all
    select 'rule', r.rulename, c.relowner from pg_rewrite r
    where r.ev_class = c.oid and r.ev_enabled <> 'D' and r.rulename <> '_RETURN'
      and case r.ev_type when '3' then 4 when '4' then 8 when '2' then 16 else 28 end & 4 <> 0
    union all
    select reached.what, reached.name, case reached.classid
        when 'pg_proc'::regclass then (select p.proowner from pg_proc p where p.oid = reached.objid)
        when 'pg_operator'::regclass then (select o.oprowner from pg_operator o where o.oid = reached.objid)
        else (select t.typowner from pg_type t where t.oid = reached.objid and t.typtype = 'd' and t.oid >= 16384) end
    from reached
    where reached.classid = any (array['pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass]::oid[])
    union all
    select 'type of column', a.attname, t.typowner from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = c.oid and t.oid >= 16384
      and a.attname in ('id', 'expires', 'headers', 'body', 'created_at', 'message')
) found
where owner <> (select u.oid from pg_roles u where u.rolname = current_user) and not exists (
    select from pg_class e join pg_namespace s on s.oid = e.relnamespace and s.nspname = 'messages'
    where e.relnamespace = c.relnamespace and e.relname in (c.relname, 'engine_schema') and e.relowner = found.owner
      and c.relname in ('message', 'message_archive', 'archive_event'))) code
        where n.nspname = to_schema and c.relname = to_table);
    if others is not null then
        raise exception 'Code of others would run with the rights of this console: %.', array_to_string(others, ', ');
    end if;
    if sent.kind = 'lease' then
        insert into messages.message as m (created_at, message) values (now() at time zone 'utc', filled::jsonb)
        returning m.id into inserted.id;
    else
        message_id := gen_random_uuid()::text;
        row_id := gen_random_uuid();
        execute format('insert into %I.%I (id, expires, headers, body) values ($1, null, $2, $3)', to_schema, to_table)
            using row_id, replace(replace(replace(sent.headers,
                '{{ message id }}', message_id),
                '{{ conversation id }}', gen_random_uuid()::text),
                '{{ time sent }}', to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS:US "Z"')),
                convert_to(filled, 'UTF8');
    end if;
    get diagnostics written = row_count;
    if written <> 1 then
        raise exception 'A trigger, a rule or a policy of the queue left the message out.';
    end if;
    message_id := coalesce(message_id, inserted.id::text);
    if sent.channel is not null then
        perform pg_notify(sent.channel, '');
    end if;
end $$;
create or replace function messages.run_schedules(
    most integer, grace interval, looker text, out ran integer, out passed_over integer, out failures integer
) language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '3s' as $$
declare
    began timestamptz := clock_timestamp();
    chosen messages.schedule;
    due record;
    made record;
    latest timestamptz;
    done integer;
begin
    ran := 0;
    passed_over := 0;
    failures := 0;
    perform from messages.schedule_look for update skip locked;
    if found then
        update messages.schedule_look set at = began, who = looker;
    end if;
    for chosen in
        select s.* from messages.schedule s
        where exists (
            select from messages.schedule_run r where r.schedule = s.id and r.outcome is null and r.due_at <= began)
        order by s.id limit most for no key update skip locked
    loop
        if chosen.paused_at is not null then
            update messages.schedule_run r set outcome = 'paused', at = began
            where r.schedule = chosen.id and r.outcome is null and r.due_at <= began;
            get diagnostics done = row_count;
            passed_over := passed_over + done;
            continue;
        end if;
        latest := (
            select max(r.due_at) from messages.schedule_run r
            where r.schedule = chosen.id and r.outcome is null and r.due_at <= began);
        begin
            done := 0;
            for due in
                select r.due_at, r.local_due from messages.schedule_run r
                where r.schedule = chosen.id and r.outcome is null and r.due_at <= began
                    and (r.due_at >= began - grace or chosen.missed = 'catch_up' and r.due_at = latest)
                order by r.due_at
            loop
                made := messages.send_scheduled(chosen, due.due_at, due.local_due);
                update messages.schedule_run r
                set outcome = case when due.due_at >= began - grace then 'sent' else 'caught_up' end,
                    at = clock_timestamp(), who = looker, message_id = made.message_id, row_id = made.row_id,
                    queue_schema = chosen.queue_schema, queue_table = chosen.queue_table
                where r.schedule = chosen.id and r.due_at = due.due_at;
                done := done + 1;
            end loop;
            ran := ran + done;
            update messages.schedule s set error = null, error_at = null where s.id = chosen.id and s.error is not null;
        exception when others then
            failures := failures + 1;
            update messages.schedule s set error = left(sqlerrm, 1000), error_at = began where s.id = chosen.id;
        end;
        update messages.schedule_run r set outcome = 'skipped', at = began
        where r.schedule = chosen.id and r.outcome is null and r.due_at < began - grace
            and not (chosen.missed = 'catch_up' and r.due_at = latest);
        get diagnostics done = row_count;
        passed_over := passed_over + done;
    end loop;
end $$;

insert into messages.engine_schema (version) values (13);

commit;
