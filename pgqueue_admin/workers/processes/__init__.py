"""The managed processes, a module each, and the adapters of the engine's ports."""
