"""Which known mistake explains what a candidate answers."""
