"""Names of .NET types, which may contain commas, dots and semicolons inside [[...]]."""

import re

_ARITY = re.compile(r"`\d+")


def split_types(text: str) -> list[str]:
    """The assembly-qualified names of an EnclosedMessageTypes header, concrete type first."""
    return [part.strip() for part in _split(text, ";") if part.strip()]


def full_name(qualified: str) -> str:
    """The type without its assembly: ``Shop.PlaceOrder, Shop, Version=1`` is ``Shop.PlaceOrder``."""
    return _split(qualified, ",")[0].strip()


def short_type(name: str, deepest: int = 5) -> str:
    """A short display name: no namespace, no assembly, generics as ``Failure<PlaceOrder>``, at most five deep."""
    name = full_name(name)
    bare = _ARITY.sub("", name.partition("[[")[0]).rpartition(".")[2]
    arguments = [short_type(each, deepest - 1) if deepest else "…" for each in _arguments(name)]
    return f"{bare}<{', '.join(arguments)}>" if arguments else bare


def _arguments(name: str) -> list[str]:
    """``Pair`2[[A, x],[B, y]]`` has the arguments ``A, x`` and ``B, y``."""
    start = name.find("[[")
    if start < 0 or not name.endswith("]]"):
        return []
    return [part.strip()[1:-1] for part in _split(name[start + 1 : -1], ",")]


def _split(text: str, separator: str) -> list[str]:
    """Split where no bracket is open."""
    if separator not in text:
        return [text]
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == separator and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
