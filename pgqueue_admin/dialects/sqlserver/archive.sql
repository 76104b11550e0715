-- name: has_conversation
-- Part of queries on queues; compares letter by letter. The reader of the headers drops ids that stand elsewhere in them.
charindex(cast(%(name)s as nvarchar(200)) collate Latin1_General_BIN2, a.headers collate Latin1_General_BIN2) > 0
    and exists (
        select 1 from openjson(%(values)s) as spelling
        where charindex(cast(left(spelling.value, 2000) as nvarchar(2000)) collate Latin1_General_BIN2,
            a.headers collate Latin1_General_BIN2) > 0
    )
