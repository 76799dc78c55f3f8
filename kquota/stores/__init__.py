"""Stores: connections to clusters, and the files that kquota keeps. They implement the ports of the other packages."""
