"""The flags of docs/command-line.md, one after another and together."""

from __future__ import annotations

import pytest
from tests.kit import Done, HomeDir, Reply, cru, pty, server

from cru.core.command_table import COMMANDS
from cru.faces.cli.flags import FLAGS, LETTERS, OWN_LETTERS, UsageProblem, find, parse


def said(home: HomeDir, *texts: str, context: str = "default") -> None:
    """Have a conversation in a context."""
    with server([Reply(f"answer to {text}") for text in texts]) as model:
        home.configure(url=model.url)
        for text in texts:
            assert cru("-C", context, text, home=home).code == 0


def test_the_help_lists_every_flag_that_works(home: HomeDir) -> None:
    run = cru("help", "flags", home=home)
    assert (run.code, run.err) == (0, "")
    for flag in FLAGS:
        assert flag.long in run.out, flag.long
        assert (f"  {flag.short}, {flag.long}" in run.out) is (flag.short in OWN_LETTERS)


def test_the_help_of_chibi_lists_every_letter(home: HomeDir) -> None:
    said = cru("help", "chibi", home=home).out
    assert [line.split(",")[0].strip() for line in said.splitlines()] == list(LETTERS)


def test_the_help_lists_every_command(home: HomeDir) -> None:
    said = cru("help", "commands", home=home).out
    for name, command in COMMANDS.items():
        assert f"  {name} " in said and command.about in said


@pytest.mark.parametrize("words", [("-h",), ("--help",), ("-v", "-h"), ("-h", "what", "ever")])
def test_help_is_found_anywhere_before_the_prompt(home: HomeDir, words: tuple[str, ...]) -> None:
    run = cru(*words, home=home)
    assert run.code == 0 and run.out.startswith("cru [FLAGS]")


def test_the_version_is_told_by_its_long_flag_only(home: HomeDir) -> None:
    assert cru("--version", home=home).out.startswith("cru ")
    run = cru("-V", home=home)
    assert run.code == 2 and "unknown flag -V" in run.err and run.out == ""


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--jsn", "--json"),
        ("--modle", "--model"),
        ("--verbos", "--verbose"),
        ("-q", ""),
        ("-vx", ""),
        ("-H", "mean --hooks?"),
        ("-V", "mean --version?"),
        ("-S", "mean --sandbox?"),
    ],
)
def test_an_unknown_flag_is_a_usage_error_with_a_suggestion(home: HomeDir, flag: str, hint: str) -> None:
    run = cru(flag, "hello", home=home)
    assert run.code == 2 and f"unknown flag {flag}" in run.err and hint in run.err and run.out == ""


def test_a_switch_with_a_value_says_that_it_takes_none(home: HomeDir) -> None:
    run = cru("--json=1", "hi", home=home)
    assert run.code == 2 and "--json takes no value" in run.err


@pytest.mark.parametrize("flag", [f.long for f in FLAGS if f.args])
def test_a_flag_without_its_value_is_a_usage_error(home: HomeDir, flag: str) -> None:
    run = cru(flag, home=home)
    assert run.code == 2 and "needs" in run.err


def test_values_may_be_attached_to_short_and_long_flags() -> None:
    parsed = parse(["-Cwork", "-g-5", "--mode=plan", "--model=a=b"])
    assert [v for _, v in parsed.flags] == [("work",), ("-5",), ("plan",), ("a=b",)]


def test_after_the_first_word_everything_is_the_prompt() -> None:
    parsed = parse(["-v", "say", "-L", "--", "-x"])
    assert parsed.words == ("say", "-L", "--", "-x") and not parsed.has("list-contexts") and not parsed.literal


def test_after_two_dashes_everything_is_the_prompt() -> None:
    parsed = parse(["-v", "--", "--help", "trace"])
    assert parsed.words == ("--help", "trace") and parsed.literal


def test_a_single_dash_is_a_word() -> None:
    assert parse(["-", "x"]).words == ("-", "x")


def test_operations_run_in_the_order_of_the_table_not_of_the_line() -> None:
    order = [
        "-C",
        "-c",
        "-a",
        "-A",
        "-z",
        "-Z",
        "-r",
        "-R",
        "-y",
        "-Y",
        "-u",
        "-m",
        "-M",
        "-l",
        "-L",
        "-d",
        "-D",
        "-g",
        "-G",
        "-n",
        "-N",
        "-P",
    ]
    line = [word for short in reversed(order[:-1]) for word in (short, *(["5"] * len(find(short)[0].args)))]
    assert [flag.short for flag, _ in parse([*line, "-P", "x"]).operations()] == order


def test_a_value_that_is_not_utf_8_is_a_usage_error() -> None:
    with pytest.raises(UsageProblem, match="not UTF-8"):
        parse(["-U", "\udcff"])


def test_lists_contexts_with_a_mark_on_the_current_one(home: HomeDir) -> None:
    assert cru("-L", home=home).out == "* default\n"
    said(home, "x", context="work")
    assert cru("-c", "main", home=home).code == 0
    assert cru("-L", home=home).out == "* main\n  work\n"


def test_switching_lasts_and_a_transient_context_does_not(home: HomeDir) -> None:
    assert cru("-c", "one", home=home).out == ""
    assert cru("-C", "two", "-l", home=home).out.startswith("Context: two\n")
    assert cru("-l", home=home).out.startswith("Context: one\n")
    assert cru("-c", "three", home=home).code == 0 and cru("-c", "-", home=home).code == 0
    assert cru("-l", home=home).out.startswith("Context: one\n")


def test_new_contexts_get_their_name_from_the_time(home: HomeDir) -> None:
    run = cru("-v", "-c", "new:task", "-l", home=home)
    name = run.out.splitlines()[0].removeprefix("Context: ")
    assert name.startswith("task_2") and len(name) == len("task_20260101_000000")
    assert f"[context {name}]" in run.err
    assert cru("-c", "new:", home=home).code == 2


def test_lists_what_a_context_holds(home: HomeDir) -> None:
    said(home, "x")
    (home.context() / "todos.md").write_text("a\nb\nc\nd\n")
    out = cru("-l", home=home).out
    assert out == "Context: default\nMessages: 2\nTodos:\n  a\n  b\n  c\n  ...\n"


def test_archiving_empties_the_conversation_and_keeps_the_log(home: HomeDir) -> None:
    said(home, "x")
    run = cru("-v", "-a", home=home)
    assert (run.code, run.out) == (0, "") and "[archived default]" in run.err
    assert "Messages: 0" in cru("-l", home=home).out
    assert "answer to x" in (home.context() / "transcript.md").read_text()


def test_another_context_is_archived_and_reported_on_stdout(home: HomeDir) -> None:
    said(home, "x", context="old")
    assert cru("-A", "old", home=home).out == "Archived old\n"
    assert "Messages: 0" in cru("-C", "old", "-l", home=home).out


def test_compacting_asks_the_model_for_a_summary(home: HomeDir) -> None:
    said(home, "a", "b")
    with server([Reply("a short summary")]) as model:
        home.configure(url=model.url)
        assert cru("-z", home=home).out == "Compacted default\n"
    assert "Summary: a short summary" in cru("-l", home=home).out


def test_compacting_another_context_needs_no_model(home: HomeDir) -> None:
    said(home, "a", "b", context="old")
    assert cru("-Z", "old", home=home).out == "Compacted old\n"
    assert "Messages: 0" in cru("-C", "old", "-l", home=home).out
    assert "nothing to compact" in cru("-Z", "old", home=home).out


def test_a_prompt_beside_a_rename_goes_to_the_new_name(home: HomeDir) -> None:
    said(home, "x")
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("-r", "fresh", "go on", home=home).code == 0
    assert [e["content"] for e in home.log("fresh") if e["entry_type"] == "message"][-2:] == ["go on", "ok"]
    assert not home.context("default").exists()


def test_another_context_is_renamed(home: HomeDir) -> None:
    said(home, "x", context="old")
    assert cru("-R", "old", "new-name", home=home).out == "Renamed old to new-name\n"
    assert home.context("new-name").is_dir() and not home.context("old").exists()


def test_a_system_prompt_is_a_text_or_a_file(home: HomeDir) -> None:
    (home.project / "prompt.md").write_text("from a file")
    assert cru("-y", "prompt.md", "-n", "prompt", home=home).out == "from a file\n"
    assert cru("-y", "a text " * 100, "-n", "system_prompt", home=home).out == "a text " * 100 + "\n"
    cru("-C", "other", "-l", home=home)
    assert cru("-Y", "other", "theirs", home=home).out == "System prompt of other set\n"
    assert cru("-N", "other", "prompt", home=home).out == "theirs\n"


def test_the_system_prompt_of_a_run_reaches_its_own_prompt(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("-y", "Speak in rhymes.", "hi", home=home).code == 0
    assert "Speak in rhymes." in model.requests[0].body["messages"][0]["content"]


def test_a_user_name_is_saved_or_holds_for_one_run(home: HomeDir) -> None:
    with server([Reply("1"), Reply("2")]) as model:
        home.configure(url=model.url)
        assert cru("-u", "ada", "hi", home=home).code == 0
        assert cru("-U", "eve", "hi", home=home).code == 0
    assert [e["from"] for e in home.log() if e.get("role") == "user"] == ["ada", "eve"]
    assert 'username = "ada"' in (home.context() / "local.toml").read_text()


def test_deleting_the_current_context_needs_a_terminal_to_confirm(home: HomeDir) -> None:
    said(home, "x")
    run = cru("-d", home=home)
    assert (run.code, run.out) == (1, "") and "nobody can confirm it" in run.err and "cru -D default" in run.err
    assert home.context().is_dir()


@pytest.mark.parametrize(("line", "left"), [("n", True), ("y", False)])
@pytest.mark.parametrize("words", [("-d",), ("-D", "default")])
def test_on_a_terminal_every_deletion_is_asked_about(
    home: HomeDir, words: tuple[str, ...], line: str, left: bool
) -> None:
    said(home, "x")
    with pty(*words, home=home) as terminal:
        terminal.expect("[y/N]")
        terminal.line(line)
        assert terminal.wait() == 0
    assert home.context().is_dir() is left


def test_a_named_context_is_deleted_and_a_missing_one_is_no_error(home: HomeDir) -> None:
    said(home, "x", context="old")
    assert cru("-D", "old", home=home).out == "Deleted old\n"
    run = cru("-D", "old", home=home)
    assert (run.code, run.out) == (0, "There is no context old\n")


def test_the_log_is_shown_from_either_end(home: HomeDir) -> None:
    said(home, "a", "b")
    assert cru("-g", "1", home=home).out == "[DEFAULT]: answer to b\n"
    assert cru("-g", "-1", home=home).out == "[USER]: a\n"
    assert len(cru("-G", "default", "0", home=home).out.splitlines()) == 4


def test_all_entries_are_those_of_the_archive_too(home: HomeDir) -> None:
    said(home, "a", "b")
    assert cru("-a", home=home).code == 0
    said(home, "c")
    last = "[USER]: c\n[DEFAULT]: answer to c\n"
    assert cru("-g", "0", home=home) == Done(
        0, "[USER]: a\n[DEFAULT]: answer to a\n[USER]: b\n[DEFAULT]: answer to b\n" + last, ""
    )
    assert cru("-g", "3", home=home) == Done(0, last, "cru: older entries are in the archive: cru -g 0\n")
    assert cru("-g", "2", home=home) == Done(0, last, "")


def test_the_log_says_what_nobody_typed(home: HomeDir) -> None:
    (home.path / "model.txt").write_text("loop: yes\ntext: hello\n")
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    (home.cru / "plugins").mkdir()
    (home.cru / "plugins" / "more.lua").write_text(
        'cru.on("turn:complete", function(ctx, e)\n'
        '  if not ctx.is_continuation then return { inject = "go on" } end\nend)\n'
        '--- Ask.\n-- @command name="ask" desc="ask"\nfunction ask(args) return { inject = "please " .. args.input } end\n'
    )
    assert cru("mine", home=home).code == 0 and cru("/ask this", home=home).code == 0
    lines = [line for line in cru("-g", "0", home=home).out.splitlines() if not line.startswith("[DEFAULT]")]
    assert lines == [
        "[USER]: mine",
        "[HOOK] (continuation): go on",
        "[USER] (/ask this): please this",
        "[HOOK] (continuation): go on",
    ]


def test_the_archive_of_another_context_is_shown_by_its_name(home: HomeDir) -> None:
    said(home, "x", context="old")
    assert cru("-A", "old", home=home).code == 0
    assert "cru -G old 0" in cru("-G", "old", "5", home=home).err
    assert len(cru("-G", "old", "0", home=home).out.splitlines()) == 2


def test_things_to_inspect_are_listed_and_have_placeholders(home: HomeDir) -> None:
    assert cru("-n", "list", home=home).out.split()[:5] == ["system_prompt", "reflection", "todos", "goals", "home"]
    assert cru("-n", "todos", home=home).out == "(no todos)\n"
    assert "cru trace --next shows what is sent" in cru("-n", "system_prompt", home=home).out
    run = cru("-n", "todoss", home=home)
    assert run.code == 2 and "`todos`" in run.err


def test_all_operations_of_a_line_run(home: HomeDir) -> None:
    run = cru("-c", "work", "-y", "P", "-L", "-n", "prompt", home=home)
    assert (run.code, run.out) == (0, "* work\nP\n")


def test_no_llm_wins_over_words_and_force_wins_over_no_llm(home: HomeDir) -> None:
    with server([Reply("forced")]) as model:
        home.configure(url=model.url)
        assert cru("-x", "hello", home=home) == Done(0, "", "cru: the prompt is not sent (-x)\n")
        assert cru("-L", "hello", home=home) == Done(0, "* default\n", "cru: the prompt is not sent (-L)\n")
        assert cru("-x", "-X", "-L", "hello", home=home).out == "* default\nforced\n"
        assert len(model.requests) == 1


def test_models_lists_them_by_its_verb_too(home: HomeDir) -> None:
    run = cru("models", "list", home=home)
    assert run.code == 0 and "openai:MODEL" in run.out and run.out == cru("models", home=home).out
    assert cru("models", "list", "x", home=home).code == 2


@pytest.mark.parametrize("first", ["trace", "models", "trust"])
def test_a_command_name_with_other_words_is_a_usage_error_that_shows_the_way(home: HomeDir, first: str) -> None:
    run = cru(first, "the bug's", "cause", home=home)
    assert run.code == 2 and f"as a prompt: cru -- {first} " in run.err and run.out == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("models", "pul", "smollm2"), "cru models pull smollm2"),
        (("trace", "--nxt"), "cru trace --next"),
        (("trace", "--trun=2"), "cru trace --turn=2"),
        (("trust", "--revok"), "cru trust --revoke"),
        (("trace", "-C", "k"), "cru -C k trace"),
        (("trace", "--next", "-Ck", "--json"), "cru -Ck trace --next --json"),
        (("trace", "--home=/x", "--next"), "cru --home=/x trace --next"),
    ],
)
def test_what_nearly_fits_a_command_is_suggested_before_the_prompt(
    home: HomeDir, words: tuple[str, ...], line: str
) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and run.out == ""
    assert run.err.splitlines()[1:] == [f"  did you mean: {line}", f"  as a prompt: cru -- {' '.join(words)}"]


def test_pull_needs_a_name(home: HomeDir) -> None:
    run = cru("models", "pull", home=home)
    assert run.code == 2 and "cru models pull smollm2" in run.err


def test_after_two_dashes_a_command_name_is_a_prompt(home: HomeDir) -> None:
    with server([Reply("traced")]) as model:
        home.configure(url=model.url)
        assert cru("--", "trace", "it", home=home).out == "traced\n"
    assert model.requests[0].body["messages"][-1]["content"] == "trace it"


def test_home_context_and_verbose_may_precede_a_command(home: HomeDir) -> None:
    run = cru("--home", str(home.path / "other"), "-C", "work", "-v", "trace", home=home)
    assert (run.code, run.out) == (0, "no turn is recorded in the context work\n")
    run = cru("--json", "trace", home=home)
    assert run.code == 2 and "--json does not go with the command `trace`" in run.err


@pytest.mark.parametrize("command", ["trace", "models", "trust"])
def test_every_command_has_a_help(home: HomeDir, command: str) -> None:
    run = cru(command, "--help", home=home)
    assert run.code == 0 and run.out.startswith(f"cru {command}")


def test_of_mode_and_trust_the_later_one_counts(home: HomeDir) -> None:
    from cru.faces.cli.run_options import overrides

    assert overrides(parse(["-t", "--mode", "plan"]))["mode"] == "plan"
    assert overrides(parse(["--mode", "plan", "-t"]))["mode"] == "trust"


def test_an_unknown_mode_is_a_usage_error_with_the_nearest_one(home: HomeDir) -> None:
    run = cru("--mode", "plann", "hi", home=home)
    assert run.code == 2 and "`plan`" in run.err


def test_resume_takes_neither_words_nor_files(home: HomeDir) -> None:
    assert cru("--resume", "hello", home=home).code == 2
    assert cru("--resume", "--attach", "x", home=home).code == 2
