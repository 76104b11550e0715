"""Freezes what start-up allocated: full garbage collections would walk it again and again."""

import gc

_is_loading = _has_loaded = False


def begin() -> None:
    """While modules load nothing of them is garbage: to look for some took a quarter of a start. Until ``loaded``."""
    global _is_loading
    if gc.isenabled() and not _has_loaded:
        _is_loading = True
        gc.disable()


def loaded() -> None:
    """Collections begin, unless somebody else had switched them off; none walks what is there by now."""
    global _is_loading, _has_loaded
    if _is_loading:
        gc.freeze()
        gc.enable()
    _is_loading, _has_loaded = False, True


def settle() -> None:
    """Once all is imported: amid pages or messages such a walk takes many milliseconds."""
    gc.collect()
    gc.freeze()
