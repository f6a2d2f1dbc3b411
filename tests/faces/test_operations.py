"""Flags that care for contexts and settings: `-` for the previous one, `-m`, `-s`, `-n`, and contexts that are renamed in use."""

from __future__ import annotations

import shlex
from importlib import import_module
from inspect import signature
from shutil import rmtree

import msgspec
import pytest
from tests.kit import Done, HomeDir, Reply, cru, pty, server

from cru.faces.cli.flags import FLAGS, REST, parse
from cru.faces.cli.operations.flag_run import TABLE


def made(home: HomeDir, *names: str) -> None:
    """Contexts, the last one current, the one before it the previous one."""
    for name in names:
        assert cru("-c", name, home=home).code == 0


def test_every_flag_that_does_something_has_its_function() -> None:
    flags = {flag.long: flag for flag in FLAGS if flag.kind == "op"}
    assert set(TABLE) == set(flags)
    for long, place in TABLE.items():
        module, _, name = place.partition(".")
        operation = getattr(import_module(f"cru.faces.cli.operations.{module}"), name)
        taken = [p for p in signature(operation).parameters.values() if p.default is p.empty][1:]
        assert len(taken) == len(flags[long].args), long
        assert (flags[long].args[-1:] == (REST,)) == (taken[-1:] != [] and taken[-1].kind is taken[-1].VAR_POSITIONAL)


def test_a_call_of_a_tool_takes_the_rest_of_the_line() -> None:
    for flag in ("-p", "-P", "--plugin", "--call-tool"):
        parsed = parse(["-v", flag, "name", "-x", "--", "a b", "-L"])
        assert [v for _, v in parsed.flags] == [(), ("name", "-x", "--", "a b", "-L")] and parsed.words == ()
    assert parse(["-pname"]).flags[0][1] == ("name",)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-A", "-"), "Archived before\n"),
        (("-Z", "-"), "before: two messages or fewer: nothing to compact\n"),
        (("-R", "-", "other"), "Renamed before to other\n"),
        (("-Y", "-", "text"), "System prompt of before set\n"),
        (("-M", "-", "scripted:{file}"), "Model of before set to scripted:{file}\n"),
        (("-D", "-"), "Deleted before\n"),
        (("-G", "-", "0"), ""),
        (("-N", "-", "todos"), "(no todos)\n"),
        (("-C", "-", "-l"), "Context: before\nMessages: 0\n"),
    ],
)
def test_a_dash_is_the_previous_context_and_only_switching_swaps(
    home: HomeDir, words: tuple[str, ...], told: str
) -> None:
    script = home.path / "model.txt"
    script.write_text("text: hi\n")
    words = tuple(word.replace("{file}", str(script)) for word in words)
    assert cru(*words, home=home).code == 2  # there is none yet
    made(home, "before", "now")
    assert cru(*words, home=home) == Done(0, told.replace("{file}", str(script)), "")
    assert "* now" in cru("-L", home=home).out


@pytest.mark.parametrize(
    "words", [("-A", "new"), ("-D", "new"), ("-G", "new", "0"), ("-N", "new:x", "todos"), ("-R", "new", "x")]
)
def test_a_new_name_is_no_context_to_look_for(home: HomeDir, words: tuple[str, ...]) -> None:
    cru(*words, home=home)
    assert not (home.cru / "contexts").exists() or list((home.cru / "contexts").iterdir()) == []


def test_a_context_cannot_be_renamed_to_what_means_a_new_name(home: HomeDir) -> None:
    made(home, "one")
    run = cru("-r", "new", home=home)
    assert run.code == 2 and "means a new name" in run.err and home.context("one").is_dir()


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", ["a b", "../x", "", "ä", "-x", "System", "x" * 201])
@pytest.mark.parametrize("flags", [("-C",), ("-c",), ("-r",), ("-D",), ("-R", "default")])
def test_names_are_checked_wherever_one_is_given(home: HomeDir, flags: tuple[str, ...], name: str) -> None:
    run = cru(*flags, name, home=home)
    assert run.code in (1, 2) and run.err.startswith("cru: ") and "Traceback" not in run.err
    assert not (home.cru / "contexts" / name).is_dir() or name == ""


def test_destroying_the_current_context_falls_back_to_the_previous_one(home: HomeDir) -> None:
    made(home, "before", "now")
    with pty("-d", home=home) as terminal:
        terminal.expect("Delete the current context now")
        terminal.line("y")
        assert terminal.wait() == 0
    assert cru("-L", home=home).out == "* before\n"
    assert cru("-D", "before", home=home).out == "Deleted before\n"
    assert cru("-L", home=home).out == "* default\n"


def test_a_model_is_saved_for_the_context_and_answers_the_prompt(home: HomeDir) -> None:
    script = home.path / "model.txt"
    script.write_text("loop: yes\ntext: from the script\n")
    assert cru("-m", f"scripted:{script}", "hi", home=home) == Done(0, "from the script\n", "")
    assert cru("again", home=home).out == "from the script\n"
    assert cru("-n", "model", home=home).out == f"scripted:{script}\n"
    assert cru("-C", "other", "-n", "model", home=home).out == "(model is not set)\n"
    assert cru("-M", "other", f"scripted:{script}", "hi", home=home).err == "cru: the prompt is not sent (-M)\n"
    assert cru("-C", "other", "hi", home=home).out == "from the script\n"


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("scripted:/no/such/file", "there is no such file"),
        ("opnai:gpt-5", "did you mean openai:?"),
        ("openai:gpt-5", "set OPENAI_API_KEY"),
        ("groq:x", "not available yet"),
        ("openai:", "no model is named"),
        ("", "a model needs a name"),
        ("smal", "did you mean `small`?"),
    ],
)
@pytest.mark.parametrize("flags", [("-m",), ("-M", "default")])
def test_a_model_that_cannot_be_is_not_saved(home: HomeDir, flags: tuple[str, ...], model: str, told: str) -> None:
    home.configure('[models.small]\nmodel = "openai:gpt-5"\n')
    made(home, "default")
    run = cru(*flags, model, home=home)
    assert run.code != 0 and told in run.err and run.out == "" and "Traceback" not in run.err
    assert not (home.context() / "local.toml").exists()


def test_a_setting_of_one_run_is_the_strongest(home: HomeDir) -> None:
    with server([Reply("1"), Reply("2")]) as model:
        home.configure("[api]\ntemperature = 0.9\n", url=model.url)
        made(home, "default")
        (home.context() / "local.toml").write_text("[api]\ntemperature = 0.7\ntop_p = 0.5\n")
        run = cru("-s", "api.temperature=0.2", "--set", "api.stop=['a']", "-s", "model=x=y", "hi", home=home)
        assert run.out == "1\n"
        body = model.requests[0].body
        assert (body["temperature"], body["top_p"], body["stop"], body["model"]) == (0.2, 0.5, ["a"], "x=y")
        assert cru("hi", home=home).out == "2\n" and model.requests[1].body["temperature"] == 0.7
    assert cru("-s", "username=42", "-n", "username", home=home).out == "42\n"
    assert cru("-s", "plugins.x.depth=3", "-n", "plugins", home=home).out == "x.depth = 3\n"
    assert cru("--model", "a", "-s", "model=b", "-n", "model", home=home).out == "b\n"
    assert cru("-s", "model=b", "--model", "a", "-n", "model", home=home).out == "a\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("modle=x", "did you mean `model`?"),
        ("api.temperatur=1", "did you mean `api.temperature`?"),
        ("api.temperature=warm", "`api.temperature`: expected a number"),
        ("permissions=x", "is a table"),
        ("mode=plann", "did you mean `plan`?"),
        ("model", "needs KEY=VALUE"),
        ("=x", "needs KEY=VALUE"),
        ("fuel=1\nmodel='x'", "`fuel`: expected a whole number"),
    ],
)
@pytest.mark.parametrize("words", [("-L",), ("hi",)])
def test_a_setting_that_does_not_fit_is_a_usage_error(
    home: HomeDir, given: str, told: str, words: tuple[str, ...]
) -> None:
    run = cru("-s", given, *words, home=home)
    assert run.code == 2 and told in run.err and run.out == "" and "Traceback" not in run.err


@pytest.mark.slow
def test_any_setting_can_be_looked_at_and_no_key(home: HomeDir) -> None:
    home.configure(
        'api_key = "sesame"\nmodel = "m"\n[api]\ntemperature = 0.5\n[models.a.api]\ntop_p = 1.0\n'
        '[plugins.x]\ntoken = "sesame"\ndepth = 2\n'
    )
    shown = {
        name: cru("-n", name, home=home).out
        for name in (
            "list",
            "api_key",
            "api",
            "api.temperature",
            "api.seed",
            "models",
            "plugins",
            "plugins.x.token",
            "home",
            "reflection_enabled",
        )
    }
    assert "sesame" not in str(shown)
    assert shown["api_key"] == "set\n" and shown["api.temperature"] == "0.5\n" and shown["api"] == "temperature = 0.5\n"
    assert shown["api.seed"] == "(api.seed is not set)\n" and shown["home"] == f"{home.cru}\n"
    assert shown["plugins"] == "x.token = set\nx.depth = 2\n" and shown["plugins.x.token"] == "set\n"
    assert shown["models"].splitlines() == ['a.model = ""', "a.api.top_p = 1.0"]
    assert shown["reflection_enabled"] == "true\n"
    assert {"home", "todos", "model", "api.temperature", "plugins.x.token"} <= set(shown["list"].split())
    made(home, "other")
    assert cru("-N", "other", "api.temperature", home=home).out == "0.5\n"
    run = cru("-n", "api.temperature.x", home=home)
    assert run.code == 2 and "cannot inspect api.temperature.x" in run.err


def test_a_context_renamed_under_an_open_chat_takes_nothing_and_loses_nothing(home: HomeDir) -> None:
    with server([Reply("one"), Reply("elsewhere"), Reply("three")]) as model:
        home.configure(url=model.url)
        with pty("-C", "old", home=home) as terminal:
            terminal.expect("> ")
            terminal.line("first")
            terminal.expect("one")
            terminal.expect("> ")  # the turn is over, and the context free
            assert cru("-R", "old", "fresh", home=home).out == "Renamed old to fresh\n"
            terminal.line("second")
            terminal.expect("it is called fresh now: cru -C fresh goes on there")
            assert not home.context("old").exists()
            assert cru("-C", "old", "theirs", home=home).out == "elsewhere\n"  # another one of that name
            terminal.line("third")
            terminal.expect("it is called fresh now")
            terminal.eof()
        assert cru("-C", "fresh", "second", home=home).out == "three\n"
    assert [e["content"] for e in home.log("fresh") if e["entry_type"] == "message"] == [
        "first",
        "one",
        "second",
        "three",
    ]
    assert [e["content"] for e in home.log("old") if e["entry_type"] == "message"] == ["theirs", "elsewhere"]


@pytest.mark.parametrize("words", [("-m", "{0}"), ("-M", "default", "{0}"), ("/model {0}",)])
@pytest.mark.parametrize("server_here", ["ollama", "lmstudio"])
def test_a_model_of_a_server_that_is_not_there_is_not_saved(
    home: HomeDir, words: tuple[str, ...], server_here: str
) -> None:
    (home.path / "model.txt").write_text("text: hi\n")
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    made(home, "default")
    model = f"{server_here}:no-such-model-anywhere"
    run = cru(*(word.format(model) for word in words), home=home)
    assert run.code == 5 and server_here in run.err and run.out == "" and "Traceback" not in run.err
    assert not (home.context() / "local.toml").exists()
    home.configure('model = "mock"\nbase_url = "http://127.0.0.1:9/v1"\n')
    assert cru(*(word.format(model) for word in words), home=home).code == 5, (
        "a named provider is asked at its own address"
    )
    assert cru(*(word.format("no-such-model") for word in words), home=home).code == 0, "base_url is not asked"


def test_nothing_to_compact_is_no_failure_and_the_prompt_goes_on(home: HomeDir) -> None:
    with server([Reply("one")]) as model:
        home.configure(url=model.url)
        nothing = "default: two messages or fewer: nothing to compact\n"
        assert cru("-z", home=home) == Done(0, nothing, "")
        assert cru("/compact", home=home) == Done(0, nothing, "")
        assert cru("-z", "hi", home=home) == Done(0, f"{nothing}one\n", "")
        assert cru("-Z", "default", home=home) == Done(0, nothing, "")


def letters(home: HomeDir, name: str, count: int) -> None:
    for number in range(count):
        arguments = msgspec.json.encode({"to": name, "content": f"word {number}"}).decode()
        assert cru("-P", "send_message", arguments, home=home).code == 0


def test_messages_that_wait_are_listed_and_shown(home: HomeDir) -> None:
    made(home, "ann", "bob")
    assert cru("-n", "inbox", home=home).out == "(no messages wait)\n" and "Inbox" not in cru("-l", home=home).out
    letters(home, "ann", 2)
    letters(home, "bob", 1)
    assert cru("-L", home=home).out == "  ann (2 messages wait)\n* bob (1 message waits)\n"
    assert "Inbox: 2 messages wait\n" in cru("-C", "ann", "-l", home=home).out
    assert cru("-N", "ann", "inbox", home=home).out == "[bob]: word 0\n[bob]: word 1\n"
    assert "(2 messages wait)" in cru("-L", home=home).out, "looking takes nothing away"
    (home.context("ann") / "inbox.jsonl").unlink()
    (home.context("ann") / "inbox.jsonl").mkdir()
    run = cru("-L", home=home)
    assert run.code == 0 and "ann (cannot read " in run.out


def test_unread_messages_are_told_before_they_are_deleted(home: HomeDir) -> None:
    made(home, "ann", "bob")
    letters(home, "ann", 2)
    letters(home, "bob", 1)
    with pty("-D", "ann", home=home) as terminal:
        terminal.expect("Delete ann with all its files and 2 unread messages? [y/N]")
        terminal.line("n")
        assert terminal.wait() == 0
    assert cru("-D", "ann", home=home).out == "Deleted ann with 2 unread messages\n"
    assert cru("-D", "bob", home=home).out == "Deleted bob with 1 unread message\n"


def test_a_context_to_delete_that_is_not_there_is_named_with_the_closest_one(home: HomeDir) -> None:
    made(home, "bee")
    assert cru("-D", "be", home=home) == Done(0, "There is no context be\n", "cru: did you mean `bee`?\n")
    assert home.context("bee").exists()


@pytest.mark.parametrize("value", ["nofile.txt", "prompts/nothing", "~/x.md", "a.prompt"])
def test_a_system_prompt_that_looks_like_a_missing_file_is_a_slip(home: HomeDir, value: str) -> None:
    made(home, "default")
    for words in (("-y", value), ("-Y", "default", value)):
        run = cru(*words, home=home)
        assert run.code == 2 and f"there is no file {value}" in run.err and f"'{value} '" in run.err
    assert not (home.context() / "system_prompt.md").exists()
    assert cru("-y", f"{value} ", "-n", "prompt", home=home).out == f"{value} \n"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1bb"])
@pytest.mark.parametrize("flag", ["-u", "-U"])
def test_a_user_name_is_one_line_with_something_in_it(home: HomeDir, flag: str, name: str) -> None:
    run = cru(flag, name, "hi", home=home)
    assert run.code == 2 and "not a user name" in run.err and not (home.context() / "local.toml").exists()


def test_a_chat_whose_context_is_gone_or_renamed_says_where_it_goes_on(home: HomeDir) -> None:
    for gone in (True, False):
        with pty("-C", "old", home=home) as terminal:
            terminal.expect("> ")
            if gone:
                rmtree(home.context("old"))
            else:
                assert cru("-R", "old", "fresh", home=home).code == 0
            assert terminal.eof() == 0
            assert ("this conversation" in terminal.text) is not gone
            assert gone or "this conversation: cru -C fresh\n" in terminal.text


@pytest.mark.parametrize("flags", [("-s", "fuel=5"), ("--model", "a b"), ("--json",), ("-v", "-t")])
def test_a_flag_that_no_command_minds_says_so_and_keeps_the_prompt_right(home: HomeDir, flags: tuple[str, ...]) -> None:
    run = cru(*flags, "plugin", "list", home=home)
    assert (
        run.code == 2
        and f"{flags[-1] if len(flags) > 1 and flags[0] == '-v' else flags[0]} does not go with" in run.err
    )
    assert "before it stand only --home, -c, -C and -v" in run.err
    assert f"as a prompt: {shlex.join(('cru', *flags, '--', 'plugin', 'list'))}" in run.err


COMPACTED = """\
{"id":"1","timestamp":1768990000,"from":"you","to":"desk","content":"old","entry_type":"message","role":"user"}
{"id":"2","timestamp":1768990001,"from":"system","to":"desk","content":"%s","entry_type":"%s","metadata":%s}
{"id":"3","timestamp":1768990002,"from":"you","to":"desk","content":"new","entry_type":"message","role":"user"}
"""


@pytest.mark.parametrize(
    ("kind", "content", "metadata", "shown", "sent"),
    [
        ("compaction", "Compacted", "{}", "[COMPACTION]: Compacted", ["old", "new"]),  # 0.4 cut the file down before
        ("compaction", "", '{"summary": "in short"}', "[COMPACTION]: in short", ["new"]),
        ("archival", "", "{}", "[ARCHIVAL]:", ["new"]),
        ("context_created", "", "{}", "[CONTEXT_CREATED]:", ["new"]),
    ],
)
def test_a_compaction_of_chibi_is_shown_and_counts(
    home: HomeDir, kind: str, content: str, metadata: str, shown: str, sent: list[str]
) -> None:
    home.context("desk").mkdir(parents=True)
    (home.context("desk") / "context.jsonl").write_text(COMPACTED % (content, kind, metadata))
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        lines = cru("-v", "-G", "desk", "0", home=home).out.splitlines()
        assert lines == ["[YOU]: old", shown, "[YOU]: new"]
        assert "[COMPACTION]" not in cru("-G", "desk", "0", home=home).out
        cru("-C", "desk", "more", home=home)
    (request,) = model.requests
    assert [m["content"] for m in request.body["messages"] if m["role"] == "user"] == ["\n\n".join([*sent, "more"])]
    assert ("in short" in request.body["messages"][0]["content"]) == ("summary" in metadata)
