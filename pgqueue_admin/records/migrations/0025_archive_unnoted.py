"""While the original's archive was read by number its table was noted; read by transaction it was not, until now: what is
noted of it may be of a table that it was restored from. It is noted anew when it is looked at next."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0024_host_given_up")]

    operations = [
        migrations.RunSQL(
            "update pgqueue_historysource set oid = null where way = 'snapshots'", migrations.RunSQL.noop
        )
    ]
