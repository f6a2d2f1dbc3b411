"""Both adapters through the real command, against a server that does what servers do to their clients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.kit import Call, Done, Drop, HomeDir, Reply, Status, cru, home, server
from tests.kit.server import Server
from tests.kit.steps import Step

LANGUAGES = {"openai": "mock", "anthropic": "anthropic_compatible:claude-mock"}
TEXT = "Grüße, 世界 — done"
HELLO = [Call("bash", {"command": "echo hällo"})]


def run(tmp_path: Path, language: str, steps: Sequence[Step], *argv: str) -> tuple[Done, Server, HomeDir]:
    with server(list(steps)) as model:
        here = home(tmp_path, config=f'model = "{LANGUAGES[language]}"\n', url=model.url)
        done = cru("-t", *argv, "hello", home=here)
    assert not model.problems
    return done, model, here


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_chunks_split_anywhere_give_the_same_turn(tmp_path: Path, language: str, size: int) -> None:
    steps = [Reply(TEXT, calls=HELLO, split=size, pieces=1), Reply(TEXT, split=size)]
    done, model, here = run(tmp_path, language, steps)
    assert (done.code, done.out) == (0, f"{TEXT}\n{TEXT}\n")
    results = [e for e in here.log() if e["entry_type"] == "tool_result"]
    assert [e["content"] for e in results] == ["hällo"]
    assert "hällo" in model.requests[1].raw.decode()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "trouble", [Status(429, {"retry-after": "0"}), Status(503, {"retry-after": "0"}), Drop(before=True)], ids=repr
)
def test_trouble_before_the_first_word_is_tried_again_and_told(tmp_path: Path, language: str, trouble: Step) -> None:
    done, model, _ = run(tmp_path, language, [trouble, Reply("after all")])
    assert (done.code, done.out) == (0, "after all\n")
    assert len(model.requests) == 2
    assert model.requests[0].raw == model.requests[1].raw
    assert done.err


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reply_that_breaks_off_is_an_error_that_keeps_what_came_and_resumes(tmp_path: Path, language: str) -> None:
    broken = Drop(after_bytes=1100, reply=Reply("one two three four five six seven eight nine", pieces=4))
    with server([broken, Reply("and the rest")]) as model:
        here = home(tmp_path, config=f'model = "{LANGUAGES[language]}"\n', url=model.url)
        done = cru("hello", home=here)
        assert done.code == 1
        assert "Traceback" not in done.err
        assert "resume with: cru -C default --resume" in done.err
        again = cru("--resume", home=here)
    assert (again.code, again.out) == (0, "and the rest\n")
    partial = [e for e in here.log() if e.get("metadata", {}).get("partial")]
    assert [e["metadata"]["partial"] for e in partial] == ["error"]
    assert partial[0]["content"] == done.out.rstrip("\n")
    sent = [m["content"] for m in model.requests[1].body["messages"]]
    assert any(partial[0]["content"] in str(content) for content in sent)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_reply_is_asked_for_again_twice_and_then_an_error(tmp_path: Path, language: str) -> None:
    done, model, _ = run(tmp_path, language, [Reply(""), Reply("something")])
    assert (done.code, done.out) == (0, "something\n")
    (tmp_path / "again").mkdir()
    done, model, here = run(tmp_path / "again", language, [Reply("")] * 5)
    assert done.code == 1
    assert len(model.requests) == 3
    assert "empty reply" in done.err
    assert here.log()[-1]["metadata"]["cause"] == "error"


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_in_the_stream_is_told_in_the_provider_s_words(tmp_path: Path, language: str) -> None:
    done, _, here = run(tmp_path, language, [Reply("some words", error="the pipes are frozen")])
    assert done.code == 1
    assert "the pipes are frozen" in done.err
    assert here.log()[-1]["entry_type"] == "leg_ended"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_whole_document_instead_of_a_stream_is_understood(tmp_path: Path, language: str) -> None:
    done, _, _ = run(tmp_path, language, [Reply(TEXT, calls=HELLO, json=True), Reply("end", json=True)])
    assert (done.code, done.out) == (0, f"{TEXT}\nend\n")


def test_a_whole_message_instead_of_deltas_is_understood(tmp_path: Path) -> None:
    done, _, _ = run(tmp_path, "openai", [Reply(TEXT, calls=HELLO, message=True), Reply("end", message=True)])
    assert (done.code, done.out) == (0, f"{TEXT}\nend\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_reasoning_goes_back_to_its_provider(tmp_path: Path, language: str) -> None:
    done, model, here = run(tmp_path, language, [Reply("a", calls=HELLO, think="because"), Reply("b")])
    assert done.out == "a\nb\n"
    if language == "anthropic":
        assert "because" in model.requests[1].raw.decode()
        assert any(e.get("metadata", {}).get("thinking") for e in here.log())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_not_tried_again(tmp_path: Path, language: str, status: int) -> None:
    done, model, _ = run(tmp_path, language, [Status(status, body="no such thing")] * 2)
    assert done.code == 1
    assert len(model.requests) == 1
    assert "Traceback" not in done.err
    assert "kit-key" not in done.err
