"""How a hook's command becomes a process: which shell runs it, what it means by a path, and where its `jq` comes from."""
