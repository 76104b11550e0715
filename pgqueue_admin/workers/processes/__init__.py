"""What runs in a managed process, a module each, and what fills the engine's ports there."""
