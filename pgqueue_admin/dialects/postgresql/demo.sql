-- name: create_schema
-- Endpoints never create schemas; the demo's is created on the embedded server only.
create schema if not exists {schema}
