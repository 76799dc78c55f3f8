"""CREATE, GROW, DELETE UNDER KIP-599: what a controller mutation quota rejects is sent again when it may be."""
