-- name: targets
-- What a retry into each address would meet, by the catalog alone. A trigger runs with the rights of the inserting user.
select asked.[schema] as [schema], asked.[table] as [table], user_name() as role,
    (
        select c.name as name, t.name as type, t.is_user_defined as is_user_defined
        from sys.columns c join sys.types t on t.user_type_id = c.user_type_id
        where c.object_id = o.object_id
        for json path
    ) as columns_json,
    cast(case when exists (
        select 1 from sys.indexes i where i.object_id = o.object_id and i.is_primary_key = 1
    ) then 1 else 0 end as bit) as has_primary_key,
    case when exists (
        select 1 from sys.identity_columns n where n.object_id = o.object_id and n.name = N'RowVersion'
    ) then o.name end as sequence,
    cast(coalesce(has_perms_by_name(
        concat(quotename(asked.[schema]), N'.', quotename(asked.[table])), N'OBJECT', N'INSERT'), 0) as bit) as may_insert,
    (
        select c.name as value from sys.columns c
        where c.object_id = o.object_id and c.is_nullable = 0 and c.is_identity = 0 and c.is_computed = 0 and c.default_object_id = 0
            and type_name(c.system_type_id) <> N'timestamp' and c.name not in (N'Id', N'Recoverable', N'Headers', N'Body')
        for json path
    ) as must_have_json,
    cast(0 as bit) as is_closed,
    (
        select concat(N'trigger ', quotename(r.name)) as value
        from sys.triggers r join sys.trigger_events e on e.object_id = r.object_id
        where r.parent_id = o.object_id and r.is_disabled = 0 and e.type_desc = N'INSERT'
        for json path
    ) as runs_json
from (
    select cast(s.value as nvarchar(128)) collate database_default as [schema],
        cast(t.value as nvarchar(128)) collate database_default as [table]
    from openjson(%(schemas)s) s join openjson(%(tables)s) t on t.[key] = s.[key]
) asked
left join sys.schemas n on n.name = asked.[schema]
left join sys.tables o on o.schema_id = n.schema_id and o.name = asked.[table]
