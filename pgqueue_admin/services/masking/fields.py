"""Decides which fields of a payload a rule hides, where single fields are shown."""

from collections.abc import Iterable

from pgqueue_admin.services.masking import text
from pgqueue_admin.services.masking.rule import Rule

_LEASE_FIELD = 200  # characters at which a payload column's value is cut


def shown(name: str, value: str, rules: Iterable[Rule]) -> str:
    """Return the value or its mask. A cut text is hidden as a whole: it may end within a hidden part."""
    rules = tuple(rules)
    for rule in rules:
        if rule.path and rule.path.hides((name,)):
            return rule.bar
    looking = next((rule for rule in rules if rule.regex is not None), None)
    if looking and (len(value) >= _LEASE_FIELD or hides(name, value, rules, is_single=True)):
        return looking.bar
    return value


def hides(name: str, value: str, rules: Iterable[Rule], *, is_single: bool) -> bool:
    rules = tuple(rules)
    paths = [rule.path for rule in rules if rule.path]
    if any(path.hides((name,)) if is_single else path.meets((name,)) for path in paths):
        return True
    beside = (value, name, f'"{name}": {value}', f'"{name}": "{value}"')
    return any(text.masked(each, rules) != each for each in beside)
