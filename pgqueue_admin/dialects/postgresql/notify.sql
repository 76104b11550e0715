-- name: announce
-- A wake-up inside the caller's transaction: sent with the commit or not at all.
select pg_notify(%(channel)s, %(payload)s)
