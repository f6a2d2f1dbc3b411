"""`cru doctor`: what is there, what is wrong, and how to mend it."""
