"""Spark jobs as DataFrames. This is the only package of kquota that imports PySpark."""
