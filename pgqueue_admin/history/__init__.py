"""Message history on Spark: finished and dead messages, kept for years.

Only ``spark`` imports pyspark, and only ``batch_loop`` imports ``spark``.
"""
