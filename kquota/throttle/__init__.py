"""Replication throttles on a cluster: the rates and lists that are set, their throughput, and leftovers."""
