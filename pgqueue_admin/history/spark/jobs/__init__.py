"""Each kind of batch that Spark does, from read to commit."""
