"""THE ONLY ROOM THAT KNOWS FLAGS, COLOURS, PROMPTS, EXIT CODES. Rooms are imported inside their command."""
