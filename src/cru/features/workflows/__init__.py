"""Workflows: an agent's discipline as a table of states (docs/workflows.md)."""
