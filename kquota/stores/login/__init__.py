"""The files of operators that say who logs in, and how: for brokers and for ZooKeeper."""
