"""What Spark runs on: Java, Python, their folders, and whether they still answer. Without pyspark."""
