"""THE RECORD THAT ALL HOSTS OF A TEAM SHARE: every run of one cluster, in a compacted topic or in its ZooKeeper."""
