"""A second application with handlers for an endpoint of the first."""
