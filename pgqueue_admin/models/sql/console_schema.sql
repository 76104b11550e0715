-- name: standing
-- Queried before anything is created: "create schema if not exists" needs a right on the database even where the schema
-- exists. Members of the owner's role may do what the owner may.
select current_user::text as role,
       n.oid is not null as there,
       o.rolname::text as owner,
       coalesce(not o.rolsuper and not pg_has_role(n.nspowner, 'member'), false) as owner_is_a_stranger,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_schema_privilege(n.oid, 'create'), false) as may_create
from (values (%(schema)s)) asked (name)
left join pg_namespace n on n.nspname = asked.name
left join pg_roles o on o.oid = n.nspowner

-- name: create_schema
-- Grants nothing: a new schema is for its owner alone.
create schema {schema}

-- name: schema_for
-- What an administrator runs where the console's role may not create a schema.
create schema {schema} authorization {role}

-- name: own_schema
-- Likewise where the schema exists and has another owner.
alter schema {schema} owner to {role}

-- name: keep_out
-- For each role that may create there besides the console's; public is a keyword, not a name.
revoke create on schema {schema} from {who}

-- name: keep_all_out
-- Where everybody may create.
revoke create on schema {schema} from public

-- name: creators
-- Roles that may create in these schemas, besides superusers and this role; null: everybody.
-- The owner of a schema counts where its tables are another role's: having created it before the console, the owner may
-- have kept a way in.
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
-- Which other roles were granted create in these schemas; null: everybody. Owners of schema or database cannot be kept out.
select n.nspname::text as schema, r.rolname::text as name
from pg_namespace n
cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
left join pg_roles r on r.oid = a.grantee
where n.nspname = any(%(schemas)s) and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
    and r.rolsuper is not true and r.rolname is distinct from current_user::text
    and a.grantee <> (select datdba from pg_database where datname = current_database())
order by 1, 2

-- name: path
-- Where a session looks up names without a schema. Also run in handlers' sessions: all names are in full.
select pg_catalog.current_schemas(true)::pg_catalog.text[]

-- name: role
-- Whether it is a superuser; the role that made the cluster always is one.
select rolname::text as name, rolsuper as is_superuser, oid = 10 as made_cluster
from pg_roles where rolname = current_user

-- name: demote
-- For a role that is a superuser without need.
alter role {role} nosuperuser

-- name: set_path
-- New tables go into the first schema of the path: nothing may be created in pg_catalog.
select set_config('search_path', %(path)s, false)

-- name: applied
-- Migrations of this app that were applied, by name.
select name::text from {schema}.django_migrations where app = %(app)s

-- name: has_ledger
-- Whether this role owns one; by the catalog, since looking up a name needs a right on its schema.
select exists(
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = %(schema)s and c.relname = 'django_migrations' and pg_has_role(c.relowner, 'member')
)
