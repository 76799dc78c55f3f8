"""The files that kquota keeps on this host, the identity of its process, and the port of the log that hosts share."""
