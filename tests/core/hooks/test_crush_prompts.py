"""UserPromptSubmit: UP1 to UP9. UP12 has no case: queued prompts are never folded into a running turn, each has its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import Made, about, config, event, moment, read
from tests.core.hooks.test_crush_turns import prepared
from tests.core.turn.support import World
from tests.kit import HomeDir, Reply, cru, server
from tests.kit.run import Done

from cru.core.events.answers import Answer
from cru.core.events.payloads import Attachment, MessageReceived
from cru.core.hooks.model.result import HookResult, HookRun

EVENT = "UserPromptSubmit"
LOOP = "loop: yes\ntext: ok\n"
RECORD = "cat >> prompts; "


def asked(here: HomeDir, *prompts: str, argv: tuple[str, ...] = ()) -> tuple[Done, list[list[str]]]:
    """One run for each prompt; how the last ended, and the user's messages of every request."""
    with server(lambda _request: Reply("done")) as model:
        here.configure('[hooks]\ndialects = ["crush"]\n', model.url)
        for prompt in prompts:
            done = cru(*argv, prompt, home=here)
        sent = [[m["content"] for m in one.body["messages"] if m["role"] == "user"] for one in model.requests]
    return done, sent


def hook(tmp_path: Path, *commands: str) -> HomeDir:
    return prepared(tmp_path, *({"command": command} for command in commands), event="user_prompt_submit")


@pytest.mark.slow
def test_up1_it_fires_on_every_prompt_once_it_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "home" / ".cru" / "contexts" / "default" / "context.jsonl"
    here = hook(tmp_path, f"grep -c message {log} >> counts; {RECORD}")
    _, sent = asked(here, "first", "second")
    assert sent == [["first"], ["first", "second"]]
    assert [part.split('"', 1)[0] for part in (here.project / "prompts").read_text().split('"prompt":"')[1:]] == [
        "first",
        "second",
    ]
    counts = [int(line) for line in (here.project / "counts").read_text().split()]
    assert counts[0] >= 1 and counts[1] > counts[0]


def test_up4_the_last_rewrite_in_the_order_of_the_configuration_wins(tmp_path: Path) -> None:
    slow = """sleep 0.2; echo '{"updated_prompt":"from the first"}'"""
    here = hook(tmp_path, slow, """echo '{"updated_prompt":"from the second"}'""", """echo '{"updated_prompt":null}'""")
    assert asked(here, "go")[1] == [["from the second"]]


def test_up5_both_texts_are_kept_and_the_model_reads_the_new_one(tmp_path: Path) -> None:
    here = hook(tmp_path, """grep -q '"prompt":"go"' && echo '{"updated_prompt":"better"}'; true""")
    done, sent = asked(here, "go", "next")
    assert sent == [["better"], ["better", "next"]]
    shown = cru("-g", "4", home=here).out
    assert "(rewritten): go" in shown and "better" not in shown
    assert "[SENT]: better" in cru("-g", "4", "-v", home=here).out
    done, _ = asked(here, "go", argv=("-v",))
    assert "rewrote the prompt" in done.err


@pytest.mark.parametrize(
    "command", ["echo 'ask nicely' >&2; exit 2", """echo '{"decision":"deny","reason":"ask nicely"}'"""]
)
def test_up6_a_denied_prompt_never_reaches_the_model_and_the_person_reads_why(tmp_path: Path, command: str) -> None:
    here = hook(tmp_path, f"grep -q rude || exit 0; {command}")
    done, sent = asked(here, "rude")
    assert sent == [] and done.code == 3 and "ask nicely" in done.err and "Traceback" not in done.err
    assert "(blocked): rude" in cru("-g", "1", home=here).out
    assert asked(here, "please")[1] == [["please"]]


def test_up6_allow_is_as_good_as_silence(tmp_path: Path) -> None:
    here = hook(tmp_path, """echo '{"decision":"allow","reason":"x"}'""")
    done, sent = asked(here, "go")
    assert (sent, done.err) == ([["go"]], "")


def test_up7_context_goes_beside_the_prompt(tmp_path: Path) -> None:
    """CF8: the files after it."""
    here = hook(tmp_path, """echo '{"context":"one","context_files":["a.md"]}'""", """echo '{"context":"two"}'""")
    (here.project / "a.md").write_text("words")
    assert asked(here, "go")[1] == [["go\n\none\n\ntwo\n\n## Referenced files\n- a.md"]]
    assert "(with context): go" in cru("-g", "2", home=here).out


def test_up9_a_command_that_gives_a_prompt_is_heard_with_its_text_and_others_are_not(tmp_path: Path) -> None:
    here = hook(tmp_path, RECORD)
    plugins = here.cru / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "review.lua").write_text(
        'return { commands = { review = { desc = "x", fn = function() return { inject = "Review it all." } end } } }'
    )
    _, sent = asked(here, "/help", "/review")
    assert sent == [["Review it all."]]
    assert (here.project / "prompts").read_text().count('"prompt":') == 1
    assert '"prompt":"Review it all."' in (here.project / "prompts").read_text()


# Sessions: prompts that wait while one runs.


def queued(tmp_path: Path, second: HookRun) -> tuple[World, list[str]]:
    """Three prompts, of which two come while the first one runs; what the hook says of the second, and which ones it heard."""
    heard: list[str] = []

    def judge(given: dict[str, Any]) -> HookRun:
        heard.append(given["prompt"])
        if heard == ["first"]:
            world.session.submit("second")
            world.session.submit("third")
        return second if given["prompt"] == "second" else HookRun(0)

    world = World(tmp_path, LOOP, Made(tmp_path, config({"command": "x"}, event=EVENT), judge))
    world.run("first")
    return world, heard


def sent_by(world: World) -> list[str]:
    return [text for role, text in world.said() if role == "user"]


def test_up8_queued_prompts_are_heard_when_their_turn_comes(tmp_path: Path) -> None:
    world, heard = queued(tmp_path, HookRun(0))
    assert heard == sent_by(world) == ["first", "second", "third"]


def test_up8_a_denied_one_is_left_out_and_the_next_one_comes(tmp_path: Path) -> None:
    world, heard = queued(tmp_path, HookRun(2, "", "no"))
    assert heard == ["first", "second", "third"] and sent_by(world) == ["first", "third"]


def test_up8_a_halt_lets_the_queue_go_with_a_note(tmp_path: Path) -> None:
    world, heard = queued(tmp_path, HookRun(49, "", "enough"))
    assert heard == ["first", "second"] and sent_by(world) == ["first"]
    assert any("1 queued prompt is dropped: enough" in text for text in world.notices())


# What one hook's output means for a prompt.


def said(output: str, prompt: str = "go", *attachments: Attachment) -> HookResult:
    [entry], _ = read(Path("/x"), config({"command": "x"}, event=EVENT))
    answer = moment(EVENT).answer
    assert answer is not None
    made = event(MessageReceived(prompt, attachments), "message:received")
    return answer(entry, made, HookRun(0, output), about(Path("/x")))


DENIED = Answer(decision="deny", reason="empty prompt")


def test_up3_updated_input_says_nothing_about_a_prompt() -> None:
    assert said('{"updated_input":{"prompt":"x"}}').answer == Answer()


def test_up4_a_wrong_type_is_left_out_and_said() -> None:
    got = said('{"updated_prompt":["x"],"context":"kept"}')
    assert got.answer == Answer(context=("kept",)) and "updated_prompt is no text" in got.warning


@pytest.mark.parametrize("text", ["", " \\n"])
def test_up4_nothing_left_of_a_prompt_is_a_denial(text: str) -> None:
    assert said(f'{{"updated_prompt":"{text}"}}').answer.decision == "deny"
    assert said(f'{{"updated_prompt":"{text}"}}').answer.reason == "empty prompt"


def test_up4_an_empty_text_may_stand_for_what_is_beside_it() -> None:
    assert said('{"updated_prompt":""}', "go", Attachment("a", "x")).answer.decision == "none"
    assert said('{"updated_prompt":"","context":"x"}').answer.decision == "none"
    assert said('{"updated_prompt":"","context_files":["a"]}').answer.decision == "none"


def test_up4_a_denial_keeps_its_own_reason() -> None:
    assert said('{"updated_prompt":"","decision":"deny","reason":"mine"}').answer.reason == "mine"
    assert said('{"updated_prompt":"","halt":true,"reason":"mine"}').answer.halt


@pytest.mark.parametrize(("source", "heard"), [
    ("user", True), ("queue", True), ("command", True), ("continuation", False), ("recurse", False), ("inbox", False),
])  # fmt: skip
def test_up1_only_what_a_person_typed_is_heard(source: str, heard: bool) -> None:
    accepts = moment(EVENT).accepts
    made = event(MessageReceived("x"), "message:received", source)
    assert accepts is not None and accepts(made, about(Path())) is heard
