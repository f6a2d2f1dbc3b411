"""Crush's hooks (charmbracelet/crush at 37f36e938, and what its documentation announces): flat entries in crush.json."""
