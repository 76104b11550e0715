"""Colours that mark an environment, on every page and in every mail: never red, amber or green."""

# For mails; pages have light and dark shades in console.css. The first is the default.
COLOURS = {"plum": "#6e2a5d", "ocean": "#0b5394", "slate": "#475569", "brown": "#6b4423", "violet": "#5b3fa0"}
