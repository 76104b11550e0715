"""Acts on dead messages, for page, Django admin and command line (DESIGN decision 5)."""
