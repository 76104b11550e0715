"""What marks an environment, on every page and in every mail: none of them red, amber or green."""

# As mails have them; pages have shades for light and dark in console.css. The first is meant where none is chosen.
COLOURS = {"plum": "#6e2a5d", "ocean": "#0b5394", "slate": "#475569", "brown": "#6b4423", "violet": "#5b3fa0"}
