"""Codex' hooks: nested entries in hooks.json or config.toml, strict outputs, and the older `notify`."""
