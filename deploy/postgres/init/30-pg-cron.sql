-- Run by the image's entrypoint: pg_cron where this server has it loaded, with leave for the role of the programs to plan jobs.
\connect pgqueue
select count(*) = 1 as has_cron from pg_available_extensions
where name = 'pg_cron' and current_setting('shared_preload_libraries') ~ '\mpg_cron\M'
\gset
\if :has_cron
create extension pg_cron;
grant usage on schema cron to pgqueue;
\endif
