"""The files that kquota keeps on this host, its process, and the port of the log that hosts share."""
