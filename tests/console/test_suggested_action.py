"""The suggested next step of a warning is the same on every page that shows it."""

from uuid import uuid4

import pytest
from django.utils import timezone

from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.console.alerts import rows
from pgqueue_admin.console.overview import needs_attention
from pgqueue_admin.models import Alert

pytestmark = pytest.mark.usefixtures("console_database")


@pytest.mark.parametrize("kind", BY_NAME)
def test_overview_and_warnings_lead_to_the_same(kind: str) -> None:
    now = timezone.now()
    about = {"subject": str(uuid4()) if kind == "crashing_message" else "Sales", "queue": '"public"."Sales"'}
    alert = Alert.objects.create(kind=kind, severity="critical", opened_at=now, last_seen_at=now, **about)
    (row,), (need,) = rows.rows([alert]), needs_attention.find([alert], [])
    assert need.step == (row.next_step or ("See the warning", "/alerts/"))
