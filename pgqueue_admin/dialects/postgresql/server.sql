-- name: database_exists
-- create database knows no "if not exists"
select exists(select from pg_database where datname = %(name)s)

-- name: create_database
-- beside the server's own, so that nothing of ours lies in "postgres"
create database {name} owner {owner}

-- name: role_exists
-- create role has none, either
select exists(select from pg_catalog.pg_roles where rolname = %(name)s)

-- name: creation_of_role
-- For programs: no superuser. A statement with a password takes no parameters, so the server quotes it.
select pg_catalog.format('create role %%I login password %%L', %(name)s::text, %(password)s::text)

-- name: checkpoint
-- after many writes: a server killed a second later is back at once, with nothing to replay
checkpoint

-- name: takes_writes
-- A standby, a read-only role and a server whose disk is full answer queries all the same.
select not current_setting('transaction_read_only')::boolean

-- name: note
-- Kept for as long as the session lives, and nowhere else: a setting without meaning.
select set_config('pgqueue.noted', %(text)s, false)

-- name: noted
-- Also empty in a session that noted nothing.
select coalesce(current_setting('pgqueue.noted', true), '')
