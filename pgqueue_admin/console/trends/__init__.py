"""History over time: charts and texts of the page Trends."""
