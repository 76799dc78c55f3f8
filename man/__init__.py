"""Generates the man pages with `python -m man.generate`, from the options of the app and from `prose`."""
