"""An edit of many messages as a sentence. Pure."""

HIDDEN = "•••"
COUNTED = {
    "changed": "change",
    "lacks": "have no such {part}: they stay dead",
    "other": "have another value there: they stay dead",
    "same": "have that value already: they stay dead",
    "unread": "cannot be changed: they stay dead",
}


def said(part: str, name: str, way: str, old: str, new: str, *, is_hidden: bool = False) -> str:
    """``sets header Tenant to “blue”``. ``is_hidden``: mask the values."""
    where = f"{part} {name}"
    before, after = (HIDDEN if is_hidden else f"“{each}”" for each in (old, new))
    return {
        "set": f"sets {where} to {after}, where there is one",
        "add": f"sets {where} to {after}, also where there is none",
        "replace": f"replaces {before} in {where} by {after}",
        "remove": f"takes {where} out",
    }.get(way, f"changes {where}")
