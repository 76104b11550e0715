"""Notes and owners of failure groups are found by the exception type."""

from datetime import timedelta

from django.utils import timezone

from pgqueue_admin.models import FailureGroup
from pgqueue_admin.models.failure_group import MOST_SAID, said_of


def test_much_said_of_one_error_hides_nothing_said_of_another(console_database: str) -> None:
    now = timezone.now()
    for number in range(3 * MOST_SAID):
        at = now - timedelta(minutes=number)
        FailureGroup.objects.create(pk=f"a{number:015}", exception="A", note=f"note {number}", noted_at=at)
    FailureGroup.objects.create(pk="b" * 16, exception="B", owner="Ana")
    FailureGroup.objects.create(pk="c" * 16, exception="B")
    said = [(group.exception, group.note or group.owner) for group in said_of(["A", "B", ""])]
    assert said == [("A", "note 0"), ("A", "note 1"), ("A", "note 2"), ("B", "Ana")]
