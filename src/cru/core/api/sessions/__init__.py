"""`cru.sessions`: conversations of scripts with sub-agents that go on, and what can be said of the session's own (docs/agents.md)."""
