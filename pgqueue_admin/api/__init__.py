"""HTTP interfaces for other programs: Prometheus metrics and deploy marks."""
