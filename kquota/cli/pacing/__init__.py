"""A throttle that changes as its move proceeds, for `move adjust` and `move run`."""
