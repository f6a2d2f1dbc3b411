"""Which messages an automatic compaction takes, and what happens when the model does not say it well."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.turn.support import Ext, always
from tests.core.turn.test_compaction import AUTO, LONG, Bare, asked, replies, talk

from cru.core.base.values.messages import Entry
from cru.core.events.answers import PASS, Answer, cancel, halt, handled, transform
from cru.core.events.payloads import ContextOverflow, MessageBeforeSend, SessionCompacted
from cru.core.events.stamp import Event
from cru.core.turn import NothingToCompact
from cru.core.turn.compaction.choice import read
from cru.core.turn.compaction.units import leaving, offer

CHOOSING = {**AUTO, "compaction_choice": "model"}
OLDEST_FOUR = ["question 2", "question 3", "the question"]


def world(path: Path, *script: str, ext: Ext | None = None) -> Bare:
    """Four questions with answers were asked; the next one makes the model choose among six messages, of which it is to name four."""
    more = "---\n".join(f"{one}\n" for one in script)
    made = Bare(path, replies(4, more=more), *([ext] if ext else []), settings=CHOOSING)
    talk(made, 4)
    return made


def test_the_model_chooses_what_becomes_the_summary(tmp_path: Path) -> None:
    here = world(
        tmp_path, 'text: These may go:\\n```json\\n["3", 4, "5", "6"]\\n```', "text: in short", "text: the answer"
    )
    (here.built.store.folder / "todos.md").write_text("- [ ] write the test")
    (here.built.store.folder / "goals.md").write_text("a release")
    result = here.run(f"the question {LONG}")
    assert (result.cause, result.response) == ("done", "the answer")
    assert asked(here) == ["question 0", "question 3", "the question"]
    choice, summary = (here.said(n)[0][1] for n in (-3, -2))
    for text in (choice, summary):
        assert "[todos]\n- [ ] write the test" in text and "[goals]\na release" in text
    assert choice.endswith("Choose about 4 of these 6 messages.")
    listed = msgspec.json.decode(choice.partition("[messages]\n")[2].rpartition("\n\n")[0])
    assert [(m["id"], m["role"]) for m in listed] == [(str(n), "user" if n % 2 else "assistant") for n in range(1, 7)]
    assert all(len(m["content"]) <= 500 for m in listed) and listed[1]["content"] == "answer 0"
    assert "question 1" in summary and "answer 2" in summary and "question 0" not in summary
    [done] = here.of(SessionCompacted)
    assert (done.archived, done.messages, done.trigger) == (4, 5, "auto")
    [overflow] = here.of(ContextOverflow)
    assert (overflow.messages, overflow.summary) == (9, "")
    [anchor] = here.log("anchor")
    *kept, _answer, _ended = here.built.store.visible()
    assert anchor.metadata["keep"] == [e.id for e in kept]
    assert [e.content.split(" x")[0] for e in here.log("message") if e.role == "user"] == [
        *(f"question {n}" for n in range(4)), "the question",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        "text: I would rather not.", "text: []", 'text: ["77", "x"]', 'text: ["1"]', 'text: ["1","2","3","4","5","6"]',
        "text: [[1, 2", "text: \\n", "error: 400 no such thing", "drop:",
    ],
)  # fmt: skip
def test_without_a_usable_choice_the_oldest_part_goes(tmp_path: Path, answer: str) -> None:
    here = world(tmp_path, answer, "text: in short", "text: the answer")
    assert here.run(f"the question {LONG}").response == "the answer"
    assert asked(here) == OLDEST_FOUR
    assert any("compaction takes the oldest messages: " in text for text in here.notices())


@pytest.mark.parametrize("answer", ["text: \\n", "error: 400 no such thing", "drop:"])
def test_without_a_summary_nothing_changes_and_the_leg_goes_on(tmp_path: Path, answer: str) -> None:
    rounds = 'call: bash {"command":"true"}\n---\n' * 2 + "text: the answer"
    here = world(tmp_path, 'text: ["1","2","3","4"]', answer, rounds)
    result = here.run(f"the question {LONG}")
    assert (result.cause, result.response) == ("done", "the answer")
    assert here.log("anchor") == [] and not (here.built.store.folder / "transcript.md").exists()
    assert len([t for t in here.notices() if "not compacted" in t]) == 1, "not tried at every round again"
    assert here.said()[0][1].startswith("question 0")


def test_a_summary_from_a_handler_spares_both_requests(tmp_path: Path) -> None:
    here = world(tmp_path, "text: the answer", ext=Ext({"context:overflow": always(handled("by hand"))}))
    assert here.run(f"the question {LONG}").response == "the answer"
    assert (asked(here), here.built.store.summary()) == (OLDEST_FOUR, "by hand")


def test_a_result_that_is_no_text_is_told(tmp_path: Path) -> None:
    ext = Ext({"context:overflow": always(Answer(result={"summary": "x"}))})
    here = world(tmp_path, 'text: ["1","2","3","4"]', "text: in short", "text: the answer", ext=ext)
    assert here.run(f"the question {LONG}").response == "the answer"
    assert any("must be text" in text for text in here.notices())
    assert here.built.store.summary() == "in short"


@pytest.mark.parametrize(("answer", "cause"), [(cancel("no requests"), "done"), (halt("stop it"), "halted")])
def test_handlers_hear_both_requests_and_may_stop_them(tmp_path: Path, answer: Answer, cause: str) -> None:
    heard: list[int] = []

    def stop(event: Event) -> Answer:
        if event.stamp.purpose != "compaction":
            return PASS
        assert isinstance(event.payload, MessageBeforeSend)
        heard.append(len(event.payload.messages))
        return answer

    here = world(tmp_path, "text: the answer", ext=Ext({"message:before_send": stop}))
    assert here.run(f"the question {LONG}").cause == cause
    assert heard == ([1, 1] if cause == "done" else [1])
    assert here.log("anchor") == []


def test_a_handler_may_choose_the_model_of_a_summary(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text('by: order\ntext: ["1","2","3","4"]\n---\ntext: by the other\n')

    def elsewhere(event: Event) -> Answer:
        return transform(model=f"scripted:{other}") if event.stamp.purpose == "compaction" else PASS

    here = world(tmp_path, "text: the answer", ext=Ext({"message:before_send": elsewhere}))
    assert here.run(f"the question {LONG}").response == "the answer"
    assert here.built.store.summary() == "by the other"


def entry(number: int, role: str) -> Entry:
    return Entry(f"{role[0]}{number}", 1, entry_type="message", role=role, content=f"{role} {number}")


def talked(count: int) -> list[Entry]:
    return [entry(n, role) for n in range(count) for role in ("user", "agent")]


def test_an_answer_that_would_open_the_conversation_goes_with_its_prompt() -> None:
    offered = offer(talked(5), 50, "")
    assert offered is not None
    assert leaving(offered, {0}) == {"u0", "a0"}
    assert leaving(offered, {0, 2}) == {"u0", "a0", "u1", "a1"}
    assert leaving(offered, {3}) == {"a1"}


def test_what_the_model_never_reads_goes_along() -> None:
    blocked = entry(7, "user")
    said = Entry("c1", 1, entry_type="message", role="agent", content="said", metadata={"call": "gone"})
    ended = Entry("l1", 1, entry_type="leg_ended", metadata={"ref": "gone", "cause": "done"})
    hidden = [msgspec.structs.replace(blocked, metadata={"source": "user"}), said, ended]
    offered = offer([*hidden, *talked(3)], 50, "")
    assert offered is not None and offered.count == 3
    assert leaving(offered) == {"u7", "c1", "l1", "u0", "a0", "u1", "a1"}


def test_four_messages_are_too_few_and_the_running_prompt_is_never_offered() -> None:
    assert offer(talked(2), 50, "") is None
    offered = offer(talked(3), 50, "u0")
    assert offered is not None and [u.entries[0].id for u in offered.candidates] == ["a0", "u1", "a1"]


def test_the_first_array_of_ids_counts_and_a_hostile_answer_costs_nothing() -> None:
    offered = offer(talked(6), 40, "")
    assert offered is not None and (offered.count, len(offered.candidates)) == (5, 10)
    assert read('I see [the list]. {"ids": ["2", "3", "9", "404"]} and not [1, 2, 4]', offered) == {1, 2, 8}
    with pytest.raises(NothingToCompact):
        read("[" * 300_000 + '"1"', offered)
