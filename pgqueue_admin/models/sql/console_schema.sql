-- name: standing
-- Asked before anything is made: "create schema if not exists" wants a right on the database also where it exists. Whose
-- the schema is: what its owner may, everybody may who is a member of that role.
select current_user::text as role,
       n.oid is not null as there,
       o.rolname::text as owner,
       coalesce(not o.rolsuper and not pg_has_role(n.nspowner, 'member'), false) as owner_is_a_stranger,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_schema_privilege(n.oid, 'create'), false) as may_create
from (values (%(schema)s)) asked (name)
left join pg_namespace n on n.nspname = asked.name
left join pg_roles o on o.oid = n.nspowner

-- name: create_schema
-- Nobody is granted anything: what a schema starts with is for its owner alone.
create schema {schema}

-- name: schema_for
-- What an administrator runs where the console's role may make no schema.
create schema {schema} authorization {role}

-- name: own_schema
-- The same where it is there, and somebody else's.
alter schema {schema} owner to {role}

-- name: keep_out
-- For each who may create there beside the console's role; the word public is no name.
revoke create on schema {schema} from {who}

-- name: keep_all_out
-- Where everybody may.
revoke create on schema {schema} from public

-- name: creators
-- Who may create in these schemas, beside superusers and this role; null: everybody. The owner of a schema counts where
-- its tables are another's: whoever made it before the console did could have kept a way in.
select n.nspname::text as schema, who.name
from pg_namespace n
cross join lateral (
    select r.rolname::text as name
    from aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    left join pg_roles r on r.oid = a.grantee
    where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner and r.rolsuper is not true
    union
    select o.rolname::text
    from pg_roles o
    where o.oid = n.nspowner and not o.rolsuper
        and exists (select from pg_class c where c.relnamespace = n.oid and c.relkind = 'r' and c.relowner <> o.oid)
) who
where n.nspname = any(%(schemas)s) and who.name is distinct from current_user::text
order by 1, 2

-- name: granted
-- Who else was let create in these schemas; null: everybody. Not who owns one, or the database, whom nobody keeps out.
select n.nspname::text as schema, r.rolname::text as name
from pg_namespace n
cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
left join pg_roles r on r.oid = a.grantee
where n.nspname = any(%(schemas)s) and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
    and r.rolsuper is not true and r.rolname is distinct from current_user::text
    and a.grantee <> (select datdba from pg_database where datname = current_database())
order by 1, 2

-- name: path
-- Where a session looks for names that are said without schema. Asked in those of handlers: all is named in full.
select pg_catalog.current_schemas(true)::pg_catalog.text[]

-- name: role
-- Whether it may do everything; the one that made the cluster always may.
select rolname::text as name, rolsuper as is_superuser, oid = 10 as made_cluster
from pg_roles where rolname = current_user

-- name: demote
-- For who is a superuser without need.
alter role {role} nosuperuser

-- name: set_path
-- While tables are made, the first schema is where they come to be: nothing may be made in pg_catalog.
select set_config('search_path', %(path)s, false)

-- name: applied
-- Migrations of this app, by their names.
select name::text from {schema}.django_migrations where app = %(app)s

-- name: has_ledger
-- Of this role's; by the catalog, since whoever looks a name up needs a right on its schema.
select exists(
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = 'django_migrations' and pg_has_role(c.relowner, 'member')
)
