"""Everything that imports pyspark: a session, its readers, its jobs, and their transforms."""
