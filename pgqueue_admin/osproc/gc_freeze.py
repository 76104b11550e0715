"""Freezes objects allocated at start-up: else each full garbage collection would scan them again."""

import gc

_is_loading = _has_loaded = False


def begin() -> None:
    """Disable collection until ``loaded``: modules leave no garbage, and collecting took a quarter of start-up."""
    global _is_loading
    if gc.isenabled() and not _has_loaded:
        _is_loading = True
        gc.disable()


def loaded() -> None:
    """Enable collection, unless ``begin`` found it disabled. Objects that exist by now are never scanned."""
    global _is_loading, _has_loaded
    if _is_loading:
        gc.freeze()
        gc.enable()
    _is_loading, _has_loaded = False, True


def settle() -> None:
    """Collect once after all imports: later, amid pages or messages, a full collection takes many milliseconds."""
    gc.collect()
    gc.freeze()
