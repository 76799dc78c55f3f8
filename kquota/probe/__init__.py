"""WHAT A CLIENT REALLY GETS: a load on a topic of our own, what came of it, and what its quota had promised."""
