"""Contexts on disk as a user meets them: who has one open, marks, inboxes, rules on files, odd paths."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.kit import Call, HomeDir, Received, Reply, Step, cru, pty, server
from tests.kit.faults import Fault, run_with

PAST, LATER = 1_000_000_000, "2100-01-31T12:00:00Z"


def due(home: HomeDir, name: str) -> None:
    """Its time has come."""
    path = home.context(name) / "context_meta.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "destroy_at": PAST}))


def marked(home: HomeDir, name: str) -> Path:
    assert cru("-C", name, "--destroy-at", LATER, home=home).code == 0
    return home.context(name)


def test_a_context_in_which_a_chat_sits_idle_stays(home: HomeDir) -> None:
    with server([]) as model:
        home.configure(url=model.url)
        marked(home, "busy")
        with pty("-C", "busy", home=home) as terminal:
            terminal.expect("> ")
            due(home, "busy")
            assert cru("-L", home=home).err == "" and home.context("busy").exists()
            refused = cru("-D", "busy", home=home)
            assert refused.code == 4 and f"is open in process {terminal.pid} on " in refused.err
            assert "(cru chat in busy)" in refused.err
            assert terminal.eof() == 0
    assert "the context busy has destroyed itself" in cru("-L", home=home).err
    assert not home.context("busy").exists()


def test_the_context_of_the_run_above_stays(home: HomeDir) -> None:
    marked(home, "above")
    due(home, "above")
    plugin = home.cru / "plugins/nested"
    plugin.parent.mkdir(parents=True)
    schema = '{"name": "nested", "description": "Nested.", "parameters": {"type": "object"}}'
    plugin.write_text(f"#!/bin/sh\n[ \"$1\" = --schema ] && echo '{schema}' && exit\ncru -L 2>&1\n")
    plugin.chmod(0o755)
    run = cru("-t", "-C", "above", "-P", "nested", home=home)
    assert run.code == 0 and "above" in run.out and "destroyed" not in run.out
    assert home.context("above").exists()


def test_in_a_home_of_chibi_a_mark_is_one_contexts_and_not_a_names(home: HomeDir) -> None:
    one = {"name": "a", "created_at": 1, "last_activity_at": 1, "destroy_after_seconds_inactive": 0, "destroy_at": 0}
    home.cru.mkdir()
    state = home.cru / "state.json"
    state.write_bytes(msgspec.json.encode({"contexts": [one]}))
    marked(home, "a").rename(home.path / "put aside")
    listed = msgspec.json.decode(state.read_bytes())["contexts"]
    assert listed[0]["destroy_at"] == 4105080000
    cru("-C", "a", "-y", "another one", home=home)
    state.write_bytes(msgspec.json.encode({"contexts": [{**listed[0], "destroy_at": PAST}]}))
    assert "Destroys" not in cru("-C", "a", "-l", home=home).out
    assert cru("-L", home=home).err == "" and home.context("a").exists()
    assert msgspec.json.decode(state.read_bytes())["contexts"][0]["destroy_at"] == 0


# inboxes -----------------------------------------------------------------------------------------------------------------------


def letter(home: HomeDir, to: str) -> Path:
    inbox = home.context(to) / "inbox.jsonl"
    inbox.parent.mkdir(parents=True)
    inbox.write_text(f'{{"from": "me", "to": "{to}", "content": "task of {to}"}}\n')
    return inbox


def test_an_inbox_that_another_turn_emptied_meanwhile_gets_none(home: HomeDir) -> None:
    letter(home, "ann")
    emptied = letter(home, "bob")

    def empties(request: Received) -> Step:
        emptied.write_bytes(b"")
        return Reply("done")

    with server(empties) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home)
        assert (run.code, run.err, run.out) == (0, "", "[ann]\ndone\n")
    assert home.log("bob") == []


def test_an_inbox_is_looked_at_again_once_the_context_is_held(home: HomeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    from cru.core.conversations.lock import ContextLock
    from cru.faces.cli.flags import parse
    from cru.faces.cli.run_options import start_of
    from cru.faces.cli.session_run import PromptRequest, one_shot

    inbox, real = letter(home, "ann"), ContextLock.__enter__

    def late(lock: ContextLock) -> None:  # another run had the context until now
        inbox.write_bytes(b"")
        real(lock)

    monkeypatch.setattr(ContextLock, "__enter__", late)
    with server([]) as model:
        home.configure(url=model.url)
        parsed = parse(["--home", str(home.cru), "-B", "ann"])
        assert one_shot(start_of(parsed, "ann"), parsed, PromptRequest("act on it", source="inbox")) == 0
        assert model.requests == []
    assert home.log("ann") == []


def test_a_context_with_two_names_gets_one_turn(home: HomeDir) -> None:
    letter(home, "ann")
    home.context("zoe").symlink_to(home.context("ann"))
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("-b", home=home).out == "done\n"


# read_context --------------------------------------------------------------------------------------------------------------------


TEXTS = {"todos.md": "buy milk", "goals.md": "be well", "summary.md": "What was."}


def read_context(home: HomeDir, rule: str) -> str:
    """What the model is told of the context `other` under a deny rule."""

    def calls(request: Received) -> Step:
        last = request.body["messages"][-1]
        return Reply("ok") if last["role"] == "tool" else Reply(calls=[Call("read_context", {"context_name": "other"})])

    with server(calls) as model:
        home.configure(f'[permissions]\ndeny = ["{rule}"]\n', url=model.url)
        assert cru("-t", "go", home=home).out == "ok\n"
    return str(next(entry["content"] for entry in home.log() if entry["entry_type"] == "tool_result"))


@pytest.mark.parametrize("name", TEXTS)
def test_a_rule_on_one_file_of_a_context_keeps_it_from_being_read(home: HomeDir, name: str) -> None:
    home.context("other").mkdir(parents=True)
    for file, text in TEXTS.items():
        (home.context("other") / file).write_text(text)
    rule = f"read:~/.cru/contexts/other/{name}"
    told = read_context(home, rule)
    assert f"{name} of the context `other` must not be read: the rule `{rule}`" in told
    assert not any(text in told for text in TEXTS.values())


def test_a_rule_on_a_file_that_is_not_there_keeps_nothing_back(home: HomeDir) -> None:
    home.context("other").mkdir(parents=True)
    (home.context("other") / "goals.md").write_text("be well")
    assert "be well" in read_context(home, "read:~/.cru/contexts/other/todos.md")


# odd paths -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [{"home": "/tmp/a\0b"}, {"project_root": "a\0b"}, {"flags": {"attach": ["a\0b"]}}])
def test_a_path_with_a_nul_is_refused_and_the_last_line_says_so(home: HomeDir, where: dict[str, object]) -> None:
    wanted = {"command": {"send_prompt": {"prompt": "hi"}}, **where}
    run = cru("--json-config", home=home, input=msgspec.json.encode(wanted))
    assert run.code == 2 and "Traceback" not in run.err
    last = msgspec.json.decode(run.err.splitlines()[-1])
    assert last["type"] == "done" and last["code"] == "invalid_input" and "NUL" in last["message"]


# what kills left --------------------------------------------------------------------------------------------------------------------


def test_what_a_kill_left_of_a_removal_goes_with_the_next_run(home: HomeDir) -> None:
    assert cru("-C", "gone", "-y", "text", home=home).code == 0
    killed = run_with(Fault(kill=1, kinds=("rmdir",)), "-D", "gone", home=home)
    left = [path.name for path in home.context().parent.iterdir() if path.name.startswith(".deleted-")]
    assert killed.done.code == -9 and len(left) == 1
    assert cru("-L", home=home).err == ""
    assert not [path for path in home.context().parent.iterdir() if path.name.startswith(".deleted-")]


def test_a_torn_line_of_the_log_is_told_once(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        assert cru("first", home=home).code == 0
        with (home.context() / "context.jsonl").open("ab") as file:
            file.write(b'{"torn')
        told = cru("-g", "1", home=home)
        assert "context.jsonl:5: the last line is incomplete" in told.err and told.out == "[DEFAULT]: one\n"
        second = cru("second", home=home)
        assert (second.code, second.out, second.err) == (0, "two\n", "")
    for words in (("-g", "2"), ("-g", "0"), ("-g", "-2"), ("-l",)):
        assert cru(*words, home=home).err == "", words
    with (home.context() / "context.jsonl").open("ab") as file:
        file.write(b"another one\n")
    assert ":10: not an entry, skipped" in cru("-g", "0", home=home).err
    assert cru("-g", "0", home=home).err == ""


def test_a_torn_line_of_the_trace_is_told_once(home: HomeDir) -> None:
    with server([Reply("one")]) as model:
        home.configure(url=model.url)
        assert cru("first", home=home).code == 0
    with (home.context() / "trace.jsonl").open("ab") as file:
        file.write(b'{"k": "torn')
    assert "(skipped)" in cru("trace", home=home).err
    assert cru("trace", home=home).err == ""


# a log that is changed in the middle of a turn --------------------------------------------------------------------------------------


CHANGES = [
    ("rm {log}", "deleted"),
    ("mv {log} {log}.away && mkdir {log}", "replaced"),
    ("ln {log} {log}.old && : > {log}", "rewritten"),
    (": > {log}", "rewritten"),
    ("cp {log} {log}.new && echo more >> {log}.new && mv {log}.new {log}", "replaced"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("command", "what"), CHANGES)
def test_a_log_that_is_changed_in_a_turn_is_told_and_nothing_of_it_is_lost(
    home: HomeDir, command: str, what: str
) -> None:
    log = home.context() / "context.jsonl"
    change = Call("bash", {"command": command.format(log=log)})
    with server([Reply("one"), Reply("looking", calls=[change]), Reply("two"), Reply("three")]) as model:
        home.configure(url=model.url)
        assert cru("first", home=home).code == 0
        run = cru("-t", "second", home=home)
        assert (run.code, run.out) == (1, "looking\n"), run
        assert f"{log} was {what} while a turn ran" in run.err and "--resume" not in run.err
        [rescued] = home.context().glob("context.jsonl.rescued-*")
        assert str(rescued) in run.err
        kept = home.lines("default", rescued.name)
        assert [entry["content"] for entry in kept if entry["entry_type"] == "message"] == [
            "first",
            "one",
            "second",
            "looking",
        ]
        assert {"tool_call", "tool_result"} <= {entry["entry_type"] for entry in kept}
        if log.is_dir():
            log.rmdir()
        rescued.rename(log)
        assert cru("third", home=home).out == "two\n"
    assert "looking" in str(model.requests[-1].body["messages"])
