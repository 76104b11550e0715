-- Jobs of pg_cron, each minute: end expired locks, NOTIFY again, send what is due by the clock.
-- Made by `manage.py pg_cron print`. Whoever runs it owns them.

select cron.schedule('pgqueue pgqueue: end expired locks'::text, '* * * * *', '-- Two at once share the rows. Foreign locks are archived; of ours the claim has said which are released.
with over as materialized (
    select m.id, m.release_expired and m.lock_token is not null
            and m.token_expires_at operator(pg_catalog.=) m.lock_expires_at as is_released
    from messages.message m where m.lock_expires_at operator(pg_catalog.<=) (pg_catalog.statement_timestamp() at time zone ''utc'')
    order by m.lock_expires_at limit 1000 for update skip locked
), gone as (
    delete from messages.message m using over
    where m.id operator(pg_catalog.=) over.id and over.is_released is not true
    returning m.id, m.created_at, m.message, m.attempts, m.lock_expires_at, case when m.lock_token is not null and m.token_expires_at operator(pg_catalog.=) m.lock_expires_at
     then pg_catalog.left(m.lock_holder, 200) end as held_by
), archived as (
    insert into messages.message_archive (
        created_at, archived_at, message, result, handled_by, details, kind, queue, message_id, attempts, sent_at)
    select created_at, pg_catalog.now() at time zone ''utc'', message, ''lock_expired'', ''pg_cron''::pg_catalog.text,
        pg_catalog.concat(''Its lock was over at '', pg_catalog.to_char(lock_expires_at, ''YYYY-MM-DD HH24:MI:SS.MS''), '' UTC.'',
            '' It was held by '' operator(pg_catalog.||) held_by operator(pg_catalog.||) ''.''),
        ''lease'', ''"messages"."message"''::pg_catalog.text, id::pg_catalog.text, attempts, created_at at time zone ''utc''
    from gone order by gone.id
    returning id
), released as (
    update messages.message m
    set lock_expires_at = null, token_expires_at = null, lock_token = null, release_expired = false,
        available_at = pg_catalog.statement_timestamp()
    from over where m.id operator(pg_catalog.=) over.id and over.is_released
    returning m.id
), told as materialized (
    select pg_catalog.pg_notify(''new_message'', id::pg_catalog.text) from released
)
select (select pg_catalog.count(*) from archived) as archived, (select pg_catalog.count(*) from told) as released'::text);

select cron.schedule('pgqueue pgqueue: notify again'::text, '* * * * *', '-- the last minute too: one NOTIFY too many is nothing, one too few waits.
with place as materialized (
    select after from messages.notify_round for update skip locked
), waiting as materialized (
    (select m.id, 1 as turn from messages.message m, place
     where m.id operator(pg_catalog.>) place.after and m.lock_expires_at is null and m.available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp() order by m.id limit 1000)
    union all
    (select m.id, 2 from messages.message m, place
     where m.id operator(pg_catalog.<=) place.after and m.lock_expires_at is null and m.available_at operator(pg_catalog.<=) pg_catalog.statement_timestamp() order by m.id limit 1000)
), told as materialized (
    select id, turn from waiting order by turn, id limit 1000
), moved as (
    update messages.notify_round set after = coalesce(
        (select id from told order by turn desc, id desc limit 1), 0)
    where exists (select from place)
)
select pg_catalog.count(pg_catalog.pg_notify(''new_message'', id::pg_catalog.text)) from told'::text);

select cron.schedule('pgqueue pgqueue: send what is due'::text, '* * * * *', 'select ran, passed_over, failures from messages.run_schedules(500, 300.0::double precision * interval ''1 second'', ''pg_cron''::text)'::text);
