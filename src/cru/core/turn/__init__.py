"""What can go wrong in the engine.

EngineError
├── BadTransition   the leg tried to go where the table has no arrow (a defect of cru)
├── EmptyReply      the model said nothing, also after retries
├── NothingToResume the log has no unfinished prompt
├── NothingToCompact
│   └── TooFewMessages
├── MayHaveRun      a call was running when the run was killed, and the policy is to let a person look
├── CardMissing     a prompt was asked of an agent with a card, and the run that is to go on with it has none
├── KeyPassedBy     a prompt with a key was left unfinished, and another one followed it
├── NoSuchTurn      a conversation has no turn of that number
├── NothingToUndo   there is no turn to take back, or none to bring again
├── UndoRefused     files were changed by someone else, or something runs that changes them (exit 3)
├── UnknownCommand  `/word` that nobody has registered (exit 2)
└── Interrupted     Ctrl-C ended an operation that is no turn (exit 130)
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class EngineError(CruError):
    pass


class BadTransition(EngineError):
    pass


class EmptyReply(EngineError):
    pass


class NothingToResume(EngineError):
    pass


class NothingToCompact(EngineError):
    pass


class TooFewMessages(NothingToCompact):
    pass


class MayHaveRun(EngineError):
    pass


class CardMissing(EngineError):
    pass


class KeyPassedBy(EngineError):
    pass


class NoSuchTurn(EngineError):
    pass


class NothingToUndo(EngineError):
    pass


class UndoRefused(EngineError):
    code = 3


class UnknownCommand(EngineError):
    code = 2


class Interrupted(EngineError):
    code = 130
