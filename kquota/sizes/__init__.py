"""Replica sizes and write rates: log dirs, snapshots, and histories of snapshots."""
