"""The texts that models read if the user has none of their own (`prompts/cru.md`, `prompts/compaction.md`, `prompts/inbox.md`)."""

from __future__ import annotations

import os

_HERE = os.path.dirname(__file__)
AGENTS, PLUGINS = os.path.join(_HERE, "agents"), os.path.join(_HERE, "plugins")
GUIDES = os.path.join(_HERE, "guide")
"""Pages for models that extend cru; they may be read without a question."""
TOUR = os.path.join(_HERE, "tour.txt")
"""A script that stands in for a model, for who has none yet."""

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

CHOICE = (
    "A conversation grows too long for the model that holds it, and a part of its messages is going to be replaced by a summary. "
    "Choose which: those that matter least to what is still to be done, such as finished work, repetitions and outdated output. "
    "Spare rules that the user set, open questions, and what the goals and todos need. You get the messages as a JSON list, the "
    "oldest first, long ones cut. Answer with a JSON array of the ids of those that may go, and nothing else."
)

INBOX = (
    "The messages above have come from other contexts. Act on them now: do what they ask as far as it fits what the user wants of "
    "you, and answer with `send_message` where an answer is due. Then say in a few words what you did."
)
