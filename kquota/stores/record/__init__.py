"""The record that all hosts of a team share: the runs of one cluster, in a compacted topic or in its ZooKeeper."""
