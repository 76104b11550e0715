"""What other programs ask the console for: figures in the formats of Prometheus."""
