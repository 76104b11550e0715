"""Lists in Django admin accept only the lookups that their filters offer."""

import pytest

from tests.admin.conftest import VIEWER, SignIn

LISTS = ("auditentry", "archivedmessage", "operation", "endpoint")


@pytest.mark.parametrize(
    "asked",
    [
        "auditentry/?reason__regex=(",
        "auditentry/?noun__regex=(",
        "archivedmessage/?headers__regex=(a%2B)%2B%24",
        "archivedmessage/?headers__icontains=x",
        "operation/?selection__iregex=(",
        "endpoint/?name__iregex=(",
    ],
)
def test_no_pattern_of_any_column(sign_in: SignIn, asked: str) -> None:
    answer = sign_in("viewer", VIEWER).get(f"/admin/pgqueue/{asked}", follow=True)
    assert (answer.status_code, answer.redirect_chain[0][0][-4:]) == (200, "?e=1")


@pytest.mark.parametrize(
    "asked",
    [
        "auditentry/?noun=endpoint&q=Sales",
        "archivedmessage/?state=dead&queue=x&exception_type=y",
        "archivedmessage/?state__exact=dead&o=1&p=1",
        "operation/?kind__exact=retry&state__exact=done",
        "endpoint/?ours__exact=1",
        *(f"{name}/" for name in LISTS),
    ],
)
def test_filters_and_search_stay(sign_in: SignIn, asked: str) -> None:
    answer = sign_in("viewer", VIEWER).get(f"/admin/pgqueue/{asked}", follow=True)
    assert answer.status_code == 200
    assert "e=1" not in str(answer.redirect_chain)
