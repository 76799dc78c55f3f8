"""Spark jobs as DataFrames. This is the only room that imports PySpark."""
