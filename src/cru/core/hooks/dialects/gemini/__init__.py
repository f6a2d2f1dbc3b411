"""Gemini CLI's hooks: nested groups in settings.json, decisions in JSON or by exit status."""
