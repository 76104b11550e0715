-- name: find_by
-- For a library that queries in a handler's session, until the transaction ends or a savepoint before this is rolled
-- back to. The name, which servers report of themselves, says whether it still holds. Returns the path before.
select before.path, pg_catalog.set_config('search_path', %(path)s, true) as now,
    pg_catalog.set_config('application_name', %(name)s, true) as name
from (select pg_catalog.current_setting('search_path') as path offset 0) before
