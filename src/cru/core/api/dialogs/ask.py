"""`cru.ask`: questions with choices, for a person or for the model. Builders never change: each setter gives a new object."""

from __future__ import annotations

from cru.core.api.arguments import array, table, text, texts, tostring, whole
from cru.core.api.dialogs.port import show_dialog
from cru.core.api.host import BadArgument, Object
from cru.core.conversations.entries import new_id


class Question(Object):
    """One question. `header` is a short title."""

    METHODS = ("choice", "choices", "multi_select", "header", "question_text", "get_choices", "is_multi_select")

    def __init__(self, header: str, question: str, choices: tuple[str, ...] = (), multi: bool = False) -> None:
        self._header, self._text, self._choices, self._multi = header, question, choices, multi

    def choice(self, label: str) -> Question:
        """The same with one more choice."""
        label = text("question:choice", "label", label)
        return Question(self._header, self._text, (*self._choices, label), self._multi)

    def choices(self, labels: list[str]) -> Question:
        """The same with these choices more."""
        labels = texts("question:choices", "labels", labels)
        return Question(self._header, self._text, (*self._choices, *labels), self._multi)

    def multi_select(self, multi: bool | None = True) -> Question:
        """The same where several choices may be taken, or not."""
        return Question(self._header, self._text, self._choices, multi is not False)

    def header(self) -> str:
        return self._header

    def question_text(self) -> str:
        return self._text

    def get_choices(self) -> list[str]:
        return list(self._choices)

    def is_multi_select(self) -> bool:
        return self._multi


class Batch(Object):
    """Questions that are asked together."""

    METHODS = ("question", "id", "question_count")

    def __init__(self, id: str, questions: tuple[Question, ...] = ()) -> None:
        self._id, self.questions = id, questions

    def question(self, question: Question) -> Batch:
        """The same with one more question. Raises BadArgument."""
        if not isinstance(question, Question):
            raise BadArgument("batch:question: not a question", "make one with cru.ask.question(header, text)")
        return Batch(self._id, (*self.questions, question))

    def id(self) -> str:
        return self._id

    def question_count(self) -> int:
        return len(self.questions)


class ChoiceAnswer(Object):
    """What was chosen: indices from 0, or words of one's own."""

    METHODS = ("selected", "first_selected", "has_selection", "selection_count", "other", "has_other")

    def __init__(self, selected: tuple[int, ...] = (), other: str | None = None) -> None:
        self._selected, self._other = selected, other

    def selected(self) -> list[int]:
        return list(self._selected)

    def first_selected(self) -> int | None:
        return self._selected[0] if self._selected else None

    def has_selection(self) -> bool:
        return bool(self._selected)

    def selection_count(self) -> int:
        return len(self._selected)

    def other(self) -> str | None:
        return self._other

    def has_other(self) -> bool:
        return self._other is not None


class AskResponse(Object):
    """The answers to a batch, in the order of its questions."""

    METHODS = ("id", "is_cancelled", "has_answers", "answer_count", "answer", "answers")

    def __init__(self, id: str, answers: tuple[ChoiceAnswer, ...] | None) -> None:
        self._id, self._answers = id, answers

    def id(self) -> str:
        return self._id

    def is_cancelled(self) -> bool:
        return self._answers is None

    def has_answers(self) -> bool:
        return bool(self._answers)

    def answer_count(self) -> int:
        return len(self._answers or ())

    def answer(self, i: int) -> ChoiceAnswer:
        """The i-th answer, from 1. Raises BadArgument if there is none."""
        index, count = whole("response:answer", "i", i), self.answer_count()
        if not 1 <= index <= count:
            raise BadArgument(f"response:answer: there is no answer {index}, there are {count}")
        return self.answers()[index - 1]

    def answers(self) -> list[ChoiceAnswer]:
        return list(self._answers or ())


def question(header: str, text_: str) -> Question:
    """ask.question(header, text) -> a question: q:choice(label), q:choices{labels}, q:multi_select(bool=true) give new questions;
    q:header(), q:question_text(), q:get_choices(), q:is_multi_select(). Raises BadArgument.

    Example: cru.ask.question("Way", "Which way?"):choice("left"):get_choices()[1] --> "left"
    """
    return Question(text("cru.ask.question", "header", header), text("cru.ask.question", "text", text_))


def batch() -> Batch:
    """ask.batch() -> questions to ask together: b:question(q) gives a new batch; b:id(), b:question_count().

    Example: cru.ask.batch():question_count() --> 0
    """
    return Batch(new_id())


def answer(indices: list[int]) -> ChoiceAnswer:
    """ask.answer{indices} -> an answer with these choices, counted from 0.

    Example: cru.ask.answer({1}):first_selected() --> 1
    """
    where = "cru.ask.answer"
    return ChoiceAnswer(tuple(whole(where, "every index", index, 0) for index in array(where, "indices", indices)))


def answer_other(words: str) -> ChoiceAnswer:
    """ask.answer_other(text) -> an answer in words of one's own.

    Example: cru.ask.answer_other("neither"):other() --> "neither"
    """
    return ChoiceAnswer(other=text("cru.ask.answer_other", "text", words))


def notify(message: str) -> dict[str, object]:
    """ask.notify(message) -> {kind = "notify", message}

    Example: cru.ask.notify("done").message --> "done"
    """
    return {"kind": "notify", "message": tostring(message)}


async def ask_user(questions: Batch) -> AskResponse:
    """ask.ask_user(batch) -> response: r:id(), r:is_cancelled(), r:has_answers(), r:answer_count(), r:answer(i) from 1, r:answers();
    an answer has a:selected() (indices from 0), a:first_selected(), a:has_selection(), a:selection_count(), a:other(),
    a:has_other(). Waits for the person; where nobody is, the response is cancelled at once. Raises BadArgument.

    Example: cru.ask.ask_user(cru.ask.batch():question(cru.ask.question("A", "b?"))):is_cancelled() --> true
    """
    batch = check_batch("cru.ask.ask_user", questions)
    request = {"id": batch.id(), "questions": [question_data(question) for question in batch.questions]}
    reply = await show_dialog("ask_batch", batch.questions[0].question_text(), request)
    return AskResponse(batch.id(), None if reply is None else read_answers(reply))


def check_batch(where: str, questions: object) -> Batch:
    """A batch with at least one question. Raises BadArgument."""
    if not isinstance(questions, Batch):
        raise BadArgument(f"{where}: not a batch", "make one with cru.ask.batch():question(q)")
    if not questions.questions:
        raise BadArgument(f"{where}: the batch has no questions", "add one with batch:question(q)")
    return questions


def question_data(question: Question) -> dict[str, object]:
    return {
        "header": question.header(), "question": question.question_text(), "choices": question.get_choices(),
        "multi_select": question.is_multi_select(), "allow_other": True,
    }  # fmt: skip


def read_answers(reply: dict[str, object]) -> tuple[ChoiceAnswer, ...] | None:
    """The answers that a dialog gave; None if it was cancelled."""
    if reply.get("cancelled"):
        return None
    return tuple(
        ChoiceAnswer(tuple(array("dialog", "selected", answer.get("selected"))), answer.get("other"))
        for answer in (table("dialog", "an answer", item) for item in array("dialog", "answers", reply.get("answers")))
    )
