"""`cru oq`."""
