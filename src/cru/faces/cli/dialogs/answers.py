"""What answers a question for leave: single keys, and lines where keys are not to be trusted or not to be had."""

from __future__ import annotations

from cru.core.guard.rules.gate import PermissionReply, PermissionSubject, ReplyScope
from cru.faces.cli.console import is_dumb_terminal
from cru.faces.cli.terminal.keyboard import typed_text

ESCAPE, END_OF_INPUT = b"\x1b", b"\x04"
MORE = "m"
"""The key that is there only if the question leaves something out."""
KEEPING = ("s", "p", "a", "e")
"""Keys that are there only if there is a rule to keep."""
CHOICES: dict[str, ReplyScope] = {
    "y": "once", "yes": "once", "once": "once", "s": "session", "session": "session", "p": "project", "project": "project",
    "a": "always", "always": "always", "n": "no", "no": "no",
}  # fmt: skip
KEEP_FOR = "keep it for: s session, p project, a always, n not at all"
WORDS = {
    "y": "yes, once",
    "s": "session",
    "p": "project",
    "a": "always",
    "n": "no",
    "e": "edit the rule",
    MORE: "more",
    "r": "no, with a reason",
}
"""What is written behind the choices when a key was pressed."""
HELP = {
    "y": "allow this call, once",
    "s": "keep the rule until this cru ends",
    "p": "keep the rule for this project",
    "a": "keep the rule everywhere",
    "e": "edit the rule, then choose how long it is kept",
    MORE: "show all of what is asked about, then ask again",
    "r": "refuse, with a reason for the model",
    "n, Esc": "refuse",
    "Ctrl-C": "refuse, and stop the answer",
}
LINE_HELP = {key: HELP[key] for key in ("y", *KEEPING, MORE)} | {
    "n": "refuse; what follows is the reason, for the model",
    "Ctrl-C": HELP["Ctrl-C"],
}
LIMIT_HELP = {
    "y": "go on; what follows is told to the model",
    "n": "stop here; what follows is told to the model beside your next prompt",
    "Ctrl-C": "stop the answer",
}
ENTER_ENDS = "you were typing: Enter ends the answer"
"""What is told where one key would answer else."""


def takes_keys(subject: PermissionSubject) -> bool:
    """Whether one key may answer: words go with the answer at a limit."""
    return not subject.is_limit and not is_dumb_terminal()


def describe_choices(subject: PermissionSubject, by_key: bool, has_more: bool = False) -> str:
    """List the answers that a question takes."""
    if subject.is_limit:
        return "y [words] go on, ? help, n [words] stop"
    keeps = "s session, p project, a always, " if subject.rule else ""
    edits = "e edit, " if subject.rule and subject.editing is not None else ""
    more = f"{MORE} more, " if has_more else ""
    if by_key:
        return f"y once, {keeps}{edits}{more}? help, r reason, n no"
    return f"y once, {keeps}{edits}{more}? help, n [reason] no"


def read_key(data: bytes) -> str:
    """The key that was pressed alone, in small letters, n for Esc; "" if it was none, or several."""
    if data == ESCAPE:
        return "n"
    text = data.decode("utf-8", "replace")
    return text.lower() if len(text) == 1 and text.isprintable() else ""


def is_line(data: bytes) -> bool:
    """Whether keys are one line that Enter ends."""
    return data[-1:] in (b"\r", b"\n") and not any(char in data[:-1] for char in b"\r\n\x1b")


def is_no_text(data: bytes) -> bool:
    """Whether they are nothing but keys such as arrows."""
    return not typed_text(data)


def read_reply(line: str, keeps: bool = True, is_limit: bool = False) -> PermissionReply | None:
    """The answer in a line; None if it is none of the choices. What allows stands alone: whoever is writing to the model, and does not
    see the question, allows nothing. `keeps`: there is a rule that s, p and a would store."""
    word, _, words = line.strip().partition(" ")
    choice = CHOICES.get(word.lower())
    if CHOICES.get(word.lower().rstrip(",:")) == "no":
        return PermissionReply("no", words.strip())
    if choice is None or (words.strip() and not (is_limit and choice == "once")):
        return None
    if choice != "once" and not keeps:
        return None
    return PermissionReply(choice, words.strip())


def is_stray(line: str) -> bool:
    """Whether a line that is no answer was meant for something else."""
    words = line.strip()
    return words not in ("", "?") and words.lower() not in CHOICES
