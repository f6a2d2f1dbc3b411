"""Claude Code's command hooks (its documentation of August 2026): settings.json of the user and of the project."""
