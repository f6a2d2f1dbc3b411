"""Calls of tools: decided, run, recorded."""
