"""History over time, as the page Trends draws and tells it."""
