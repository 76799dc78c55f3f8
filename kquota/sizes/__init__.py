"""Replica sizes: the row that snapshots, kafka-log-dirs' JSON and the Spark job share."""
