-- name: database_exists
-- create database knows no "if not exists"
select exists(select from pg_database where datname = %(name)s)

-- name: create_database
-- beside the server's own, so that nothing of ours lies in "postgres"
create database {name}

-- name: checkpoint
-- after much was written: a server killed a second later is back at once, with nothing to replay
checkpoint

-- name: takes_writes
-- A standby, a read-only role and a server whose disk is full answer everybody who asks.
select not current_setting('transaction_read_only')::boolean
