"""What Spark runs on: Java, Python, their folders, and a watchdog. Without pyspark."""
