"""What can be left out: one folder for each feature."""
