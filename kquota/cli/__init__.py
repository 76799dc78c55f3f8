"""Options, colors, prompts and exit codes. Only this room knows them. Other rooms are imported inside their command."""
