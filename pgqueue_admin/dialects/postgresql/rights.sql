-- name: role
-- The role, and whether any act could work.
-- A role may have just the rights it needs: to insert into one queue, to delete from another, and both on none; or to
-- discard only, which is written in the archive alone.
select current_user::text as name,
       pg_is_in_recovery() as standby,
       current_setting('default_transaction_read_only')::boolean as refuses_writes,
       count(c.oid) > 0 and not coalesce(bool_or(has_table_privilege(c.oid, 'insert, delete')), false)
           and not exists (  -- by the catalog: looking up the name needs a right on its schema
               select from pg_class a join pg_namespace m on m.oid = a.relnamespace
               where m.nspname = 'messages' and a.relname = 'message_archive' and has_table_privilege(a.oid, 'update')
           ) as read_only
from pg_namespace n
left join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p')
where n.nspname = any(%(schemas)s)
