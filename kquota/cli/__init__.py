"""THE ONLY ROOM THAT KNOWS FLAGS, COLOURS, PROMPTS AND EXIT CODES. Rooms are imported inside the command that needs them."""
