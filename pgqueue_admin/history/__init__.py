"""Message history on Spark: what left the queues, kept for years.

pyspark is imported in ``spark`` only, and ``spark`` by ``driver`` only.
"""
