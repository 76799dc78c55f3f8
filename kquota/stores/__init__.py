"""THE ONLY ROOM THAT TALKS TO A CLUSTER OR KEEPS STATE: implements the ports of the rooms below."""
