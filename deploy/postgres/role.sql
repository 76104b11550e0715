-- Run once by the image's entrypoint, on an empty volume: programs get a role that owns their database and is no superuser.
\getenv password POSTGRES_PASSWORD
create role pgqueue login password :'password';
create database pgqueue owner pgqueue;
-- The same password must not lead further: administrators come from inside, `docker compose exec postgres psql -U postgres`.
alter role postgres password null;
