"""Values, files, settings, network and processes: nothing here knows of sessions."""
