"""How long 99 in 100 take is seen by the hour, too: of the last weeks, whose rollups are kept, hours are seen anew."""

from django.db import migrations

# Hours are seen from the last one of all kinds together on (judging/seen.py), the oldest first: with those of half a year
# the newest would wait for long. Eight weeks are compared with.
SEEN_ANEW = """
delete from pgqueue_seenstep
where grain = 'hour' and queue = '' and endpoint = '' and type = ''
    and at >= greatest(
        (select min(at) from pgqueue_rollup where grain = 'hour'), date_trunc('hour', now()) - interval '70 days'
    )
"""


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0032_failures_by_step")]

    operations = [migrations.RunSQL(SEEN_ANEW, migrations.RunSQL.noop)]
