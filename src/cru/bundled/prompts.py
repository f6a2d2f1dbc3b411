"""The texts that models read if the user has none of their own (`prompts/cru.md`, `prompts/compaction.md`)."""

import os

GUIDES = os.path.join(os.path.dirname(__file__), "guide")
"""Pages for models that extend cru; they may be read without a question."""

BASE = (
    "You are cru, an agent on the command line. You help the user with the project in the working directory. Use the tools "
    "to look before you answer and to do what is asked; never claim that something was done which was not. Be brief and exact. "
    f"Before you extend cru itself (plugins, rules, hooks, tools, commands, workflows), read {GUIDES}/plugins.md."
)

COMPACTION = (
    "Summarise the conversation below so that it can go on from your summary alone. Keep: what the user wants, decisions with "
    "their reasons, names of files and commands, what is done, what is open, and every rule that the user set. Leave out what "
    "no longer matters. Write plain text."
)
