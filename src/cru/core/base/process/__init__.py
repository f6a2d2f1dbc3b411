"""Child processes: started, fed, read within bounds, and ended with everything that they started."""
