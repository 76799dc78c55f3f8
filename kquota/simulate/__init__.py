"""THE BROKER'S OWN ARITHMETIC: when a load is let through, and when it waits. Pure; time is an argument, in ms."""
