"""Stores: connections to clusters, and the files that kquota keeps. Implements the ports of the rooms below."""
