"""Messages that are sent by the clock: a cron expression with a time zone, or a date. Needs no Django."""
