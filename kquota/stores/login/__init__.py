"""The files of operators that define a login, for brokers and for ZooKeeper."""
