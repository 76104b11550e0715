-- Run by the image's entrypoint: pg_cron where this server has it loaded, and its jobs, which are of the role of the programs.
\connect pgqueue
select count(*) = 1 as has_cron from pg_available_extensions
where name = 'pg_cron' and current_setting('shared_preload_libraries') ~ '\mpg_cron\M'
\gset
\if :has_cron
create extension pg_cron;
grant usage on schema cron to pgqueue;
set role pgqueue;
\ir ../cron-jobs.sql
\endif
