"""Settings: layers, positions, checks. `read_layer`, `environment_layer`, `restrict` and `merge` are the way in."""
