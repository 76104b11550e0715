-- name: begin
-- Not by the driver, which would commit it.
begin

-- name: prepare
-- Takes no parameters. Where the transaction has failed the server would roll back and say nothing: that is asked before.
prepare transaction {gid}

-- name: commit
-- In any session of the same role.
commit prepared {gid}

-- name: roll_back
-- In any session of the same role.
rollback prepared {gid}

-- name: prepared
-- Only what this role may end: what others prepare under such a name is theirs.
select gid from pg_prepared_xacts
where database = current_database() and owner = current_user and starts_with(gid, %(prefix)s)

-- name: most
-- Zero: this server prepares nothing.
select current_setting('max_prepared_transactions')::int
