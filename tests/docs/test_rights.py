"""docs/deployment.md says who may do what, by the names that Django admin shows."""

from pathlib import Path

from django.contrib.auth.models import Permission

from pgqueue_admin.operations.rights import PERMISSIONS

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs/deployment.md").read_text(encoding="utf-8")


def test_each_right_is_told_as_django_admin_lists_it(console_database: str) -> None:
    told = PAGE.partition("## Who may do what")[2].partition("\n## ")[0]
    codes = {code.removeprefix("pgqueue.") for code in PERMISSIONS.values()}
    listed = [str(each) for each in Permission.objects.filter(codename__in=codes)]
    assert len(listed) == len(codes) == 4
    assert [name for name in listed if f"| {name.replace('|', chr(92) + '|')} |" not in told] == []
