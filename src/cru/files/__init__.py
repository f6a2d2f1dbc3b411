"""Files and patterns of file names: the lowest room that touches the disk."""
