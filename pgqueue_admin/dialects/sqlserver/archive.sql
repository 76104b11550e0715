-- name: has_conversation
-- Part of those that look into queues: letter by letter. What else has the id in it, whoever reads the headers leaves out.
charindex(cast(%(name)s as nvarchar(200)) collate Latin1_General_BIN2, a.headers collate Latin1_General_BIN2) > 0
    and exists (
        select 1 from openjson(%(values)s) as spelling
        where charindex(cast(left(spelling.value, 2000) as nvarchar(2000)) collate Latin1_General_BIN2,
            a.headers collate Latin1_General_BIN2) > 0
    )
