-- server_time: In UTC, as all times it is compared with.
select utc_timestamp(6) as now
