"""All that imports pyspark: a session, what is read with it, its jobs, and the steps they are made of."""
