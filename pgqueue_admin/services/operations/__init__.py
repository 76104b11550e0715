"""Acts on dead messages: page, Django admin and command line all come here (DESIGN decision 5)."""
