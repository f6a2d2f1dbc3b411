"""Settings: layers, positions, checks. `read_layer`, `environment_layer`, `restrict_untrusted` and `merge_layers` are the way in."""
