"""THE ONLY ROOM THAT IMPORTS PYSPARK: starts it, and says the jobs as DataFrames."""
