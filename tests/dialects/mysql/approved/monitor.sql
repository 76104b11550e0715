-- server_time: In UTC, as all that is compared with it.
select utc_timestamp(6) as now
