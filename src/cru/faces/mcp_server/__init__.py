"""cru as an MCP server: other agents call its tools, through its rules, hooks and questions (docs/mcp-server.md)."""
