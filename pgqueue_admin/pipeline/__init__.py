"""Message history on Spark: what left the queues, kept for years.

pyspark is imported by ``spark``, ``job``, ``recomputing``, ``compacting``, ``source``, ``schemas`` and ``transforms``
only; these by ``driver`` only.
"""
