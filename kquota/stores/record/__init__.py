"""The record that all hosts of a team share: every run of one cluster, in a compacted topic or in its ZooKeeper."""
