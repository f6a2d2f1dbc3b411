"""What the model may call: the registry, the built-in tools, their schemas, and outputs saved to files."""
