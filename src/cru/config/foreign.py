"""Settings of chibi 0.10 that mean nothing here: what takes their place (docs/coming-from-chibi.md)."""

from __future__ import annotations

IDLE: dict[str, str] = {
    "fallback_tool": "an answer without a call ends the turn; plugins may go on with it",
    "fuel_empty_response_cost": "",
    "subagent_cost_tier": "",
    "file_tools_allowed_paths": 'outside of the project is asked about, or `[permissions] allow = ["read:~/notes/**"]`',
    "storage": "rotation needs no settings",
    "vfs": "",
    "site": "",
}
"""They are told and have no effect."""

RULES: dict[str, str] = {
    "tools": 'write it as rules: `[permissions] deny = ["bash"]`',
    "url_policy": 'write it as rules: `[permissions] deny = ["fetch:http://10.*"]`',
}
"""They forbid something, so nothing runs before they are rewritten."""
