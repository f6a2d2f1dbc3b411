"""What decides whether a call may run, and where: the shell reader, rules, the sandbox."""
