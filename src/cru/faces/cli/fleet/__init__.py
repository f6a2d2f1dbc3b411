"""`cru batch` and `cru worker`."""
