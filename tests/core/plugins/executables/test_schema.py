"""What a program says of itself: every way to say it wrong, and how often it is asked."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.plugins.executables.programs import IMPATIENT, calls, listed, program, results, script, tool
from tests.kit import HomeDir, cru
from tests.kit.processes import is_running
from tests.kit.waiting import wait_until

from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.executables import schemas
from cru.core.plugins.executables.calls import ProgramContext
from cru.core.plugins.executables.executable import HOOKS
from cru.core.plugins.executables.schemas import era_of, read_schema

FIELDS = st.sampled_from(["name", "description", "parameters", "hooks", "parallel", "summary_params"])
JSON = st.recursive(st.none() | st.booleans() | st.text(), lambda some: st.lists(some) | st.dictionaries(FIELDS, some))
GOOD = '{"name": "good", "description": "fine"}'

# What the program does when it is asked → what is said.
BROKEN: dict[str, tuple[str, str]] = {
    "not JSON": ("echo 'usage: it'", "`--schema` does not print JSON"),
    "nothing": ("", "`--schema` prints nothing"),
    "not UTF-8": (r"printf '\xff\xfe'", "`--schema` does not print JSON"),
    "fifty megabytes": ("head -c 52428800 /dev/zero", "`--schema` prints more than 4 MiB"),
    "too much on standard error": ("head -c 52428800 /dev/zero >&2", "`--schema` prints more than 4 MiB"),
    "an exit status": ("echo half; echo no such thing >&2; exit 3", "`--schema`: exit code 3: no such thing"),
    "a signal": ("kill -SEGV $$", "`--schema`: ended by SIGSEGV"),
    "a number": ("echo 42", "`--schema` is left out: Expected `object`, got `int`"),
    "an empty list": ("echo '[]'", "`--schema` names no tool"),
    "no name": ("""echo '{"description": "x"}'""", "`--schema` is left out: Object missing required field `name`"),
    "a bad name": ("""echo '{"name": "two words", "description": "x"}'""", "the name 'two words' is not made of"),
    "bad parameters": (
        """echo '{"name": "x", "description": "x", "parameters": []}'""", "Expected `object | null`, got `array` - at `$.parameters`",
    ),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_schema_is_told_and_the_run_goes_on(home: HomeDir, what: str) -> None:
    does, said = BROKEN[what]
    program(home, "broken", f"#!/bin/bash\n{does}\n")
    tool(home, "good", "echo fine")
    run = calls(home, "good")
    assert (run.code, run.out, results(home)) == (0, "done\n", ["fine\n"])
    assert "cru: plugin broken is not loaded: " in run.err and said in run.err
    assert "Traceback" not in run.err and len(run.err) < 2000


def test_one_that_never_ends_is_ended_and_the_run_goes_on(home: HomeDir, tmp_path: Path) -> None:
    program(home, "hangs", f"#!/bin/bash\nsleep 300 & echo $! >{tmp_path}/child; wait\n")
    tool(home, "good", "echo fine")
    run = calls(home, "good", script=IMPATIENT)
    assert run.code == 0 and "`--schema` does not end within 0.3 s" in run.err
    assert results(home) == ["fine\n"]
    wait_until(lambda: not is_running(int((tmp_path / "child").read_text())))


def test_the_health_of_one_that_never_ends(home: HomeDir) -> None:
    program(home, "hangs", "#!/bin/bash\nsleep 300\n")
    run = cru("plugin", "health", "hangs", home=home, script=IMPATIENT)
    lines = [" ".join(line.split()) for line in run.out.splitlines()]
    assert lines[1:3] == [
        "error `--schema` does not end within 0.3 s",
        "it is asked again when its file changes, and by `cru plugin list`",
    ]
    assert run.code == 1 and "\\n" not in run.out


def test_at_the_limit_all_that_it_started_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hangs"
    path.write_text(f"#!/bin/bash\nsleep 300 & echo $! >{tmp_path}/child; wait\n")
    path.chmod(0o755)
    monkeypatch.setattr(schemas, "SECONDS", 0.5)
    where = ProgramContext(tmp_path, tmp_path, tmp_path, dict(os.environ), "main", lambda text: None)
    assert asyncio.run(schemas.ask_schema(path, where)).failure == "`--schema` does not end within 0.5 s"
    wait_until(lambda: not is_running(int((tmp_path / "child").read_text())))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("no first line", "is no program: its first line must be #! and an interpreter"),
        ("#!/nowhere/python", "the interpreter that its first line names is not there"),
        ("#!/bin/bash\r", "its first line ends with CR LF"),
        ("#!/usr/bin/env bash\r", "its first line ends with CR LF"),
        ("#!/bin/sh -e\r", "its first line ends with CR LF"),
    ],
)
def test_what_cannot_be_started(home: HomeDir, first: str, said: str) -> None:
    program(home, "odd", f"{first}\necho\n")
    assert said in listed(home)["odd"]["error"]


def test_it_is_called_with_one_word_and_empty_input(home: HomeDir) -> None:
    program(
        home,
        "exact",
        '#!/bin/bash\n[[ $# == 1 && $1 == --schema && -z "$(cat)" && -z ${CHIBI_HOOK+x}${CHIBI_TOOL_NAME+x} ]] || exit 1\n'
        f"echo '{GOOD}'\n",
    )
    run = cru("plugin", "list", "--json", home=home, env={"CHIBI_HOOK": "pre_tool", "CHIBI_TOOL_NAME": "other"})
    row = next(row for row in msgspec.json.decode(run.out) if row["name"] == "exact")
    assert (row["state"], row["tools"]) == ("active", ["good"])


def test_bad_members_of_a_list_are_left_out_the_others_count(home: HomeDir) -> None:
    members = [
        {"name": "one", "description": "1", "more": True},
        7,
        {"name": "two"},
        {"name": "three", "description": "3"},
    ]
    program(home, "many", f"#!/bin/bash\necho '{msgspec.json.encode(members).decode()}'\n")
    row = listed(home)["many"]
    assert row["tools"] == ["one", "three"]
    assert row["errors"] == [
        "`--schema`, tool 2 is left out: Expected `object`, got `int`",
        "`--schema`, tool 3 is left out: Object missing required field `description`",
    ]


def test_a_name_that_is_taken_stays_with_whom_it_belongs_to(home: HomeDir) -> None:
    tool(home, "aaa", "echo first").write_text(
        f"""#!/bin/bash\necho '[{GOOD}, {GOOD}, {GOOD.replace("good", "bash")}, {GOOD.replace("good", "own")}]'\n"""
    )
    program(home, "bbb", f"#!/bin/bash\necho '{GOOD}'\n")
    rows = listed(home)
    assert (rows["aaa"]["tools"], rows["bbb"]["tools"]) == (["good", "own"], [])
    assert rows["aaa"]["errors"] == [
        "the tool good of aaa is left out: aaa has one of that name",
        "the tool bash of aaa is left out: cru itself has one of that name",
    ]
    assert rows["bbb"]["errors"] == ["the tool good of bbb is left out: aaa has one of that name"]


def test_the_hooks_of_one_whose_name_is_taken_run_all_the_same(home: HomeDir) -> None:
    said = '{"name": "bash", "description": "x", "hooks": ["pre_message"]}'
    program(
        home,
        "guard",
        f"#!/bin/bash\nif [[ $1 == --schema ]]; then echo '{said}'; exit; fi\necho \"$CHIBI_HOOK\" >>heard\n",
    )
    script(home, "fine")
    assert cru("go", home=home).code == 0
    assert (home.project / "heard").read_text() == "pre_message\n"


def test_an_unknown_hook_is_told_with_the_nearest(home: HomeDir) -> None:
    tool(home, "keen", "echo", '"hooks": ["pre_mesage", "on_start", "no_such_moment_at_all"]')
    errors = listed(home)["keen"]["errors"]
    assert "`--schema`: there is no hook pre_mesage; did you mean `pre_message`?" in errors
    assert "`--schema`: there is no hook no_such_moment_at_all" in errors


def test_a_field_that_is_nearly_one_is_told(home: HomeDir) -> None:
    more = '"hook": ["pre_tool"], "paramaters": {}, "Parallel": false, "version": 2, "Name": "x", "metadata": {}'
    tool(home, "keen", "echo", more)
    errors = listed(home)["keen"]["errors"]
    assert errors == [
        "`--schema`: `hook` has no effect; did you mean `hooks`?",
        "`--schema`: `paramaters` has no effect; did you mean `parameters`?",
        "`--schema`: `Parallel` has no effect; did you mean `parallel`?",
    ]
    for _ in range(2):  # also when it is not asked again
        assert errors[0] in calls(home, "keen").err


def test_missing_parameters_are_an_empty_object(home: HomeDir) -> None:
    (made,), _ = read_schema(GOOD.encode())
    assert made.parameters == {"type": "object", "properties": {}}
    assert (made.hooks, made.parallel, made.flow_control, made.ends_turn) == ((), True, False, False)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.binary() | JSON.map(msgspec.json.encode))
def test_whatever_is_printed_is_read_or_refused(printed: bytes) -> None:
    try:
        tools, _ = read_schema(printed)
    except PluginFailed as error:
        assert error.message
    else:
        assert tools and all(set(tool.hooks) <= set(HOOKS) for tool in tools)


# which generation ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "era"),
    [
        (b"#!/bin/sh\necho $CHIBI_TOOL_ARGS", "env"),
        (b"\x7fELF\0\xff CHIBI_HOOK_DATA\0", "env"),
        (b"#!/bin/sh\ncat; echo $CHIBI_TOOL_NAME $CHIBI_HOOK", "stdin"),
        (b"", "stdin"),
    ],
)
def test_the_generation_is_seen_in_the_file(tmp_path: Path, content: bytes, era: str) -> None:
    (tmp_path / "it").write_bytes(content)
    assert era_of(tmp_path / "it") == era


def test_the_generation_may_be_said(home: HomeDir) -> None:
    tool(home, "either", 'read -r line; echo "env ${CHIBI_TOOL_ARGS:-none} stdin ${line:-none}"')
    calls(home, 'either {"a": 1}')
    calls(home, 'either {"a": 1}', config='[plugins.either]\nera = "stdin"\n', flags=("-C", "second"))
    assert results(home) == ['env {"a":1} stdin none\n']
    assert results(home, "second") == ['env none stdin {"a":1}\n']


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('era = "envv"', "[plugins.fine] era: there is no 'envv'"),
        ("era = 3", "[plugins.fine] era: there is no 3"),
        ('on_error = "denny"', "did you mean `deny`?"),
        ("timeout = -1", "[plugins.fine] timeout must be a number of seconds"),
        ('hook_timeout = "1"', "[plugins.fine] hook_timeout must be a number of seconds"),
    ],
)
def test_bad_settings_are_told(home: HomeDir, line: str, said: str) -> None:
    tool(home, "fine", "echo")
    home.configure(f"[plugins.fine]\n{line}\n")
    row = listed(home)["fine"]
    assert row["state"] == "error" and said in row["error"]


# the cache -----------------------------------------------------------------------------------------------------------------------


def asked(home: HomeDir) -> int:
    log = home.project / "asked"
    return len(log.read_text().splitlines()) if log.exists() else 0


def counting(home: HomeDir, name: str = "counted", schema: str = "") -> Path:
    return tool(home, name, "echo ran", schema, first=f"[[ $1 == --schema ]] && echo x >>{home.project}/asked")


def test_an_unchanged_program_is_asked_once_in_its_life(home: HomeDir) -> None:
    made = counting(home, schema='"hooks": ["pre_mesage"]')
    first = listed(home)["counted"]
    assert listed(home)["counted"] == first and first["errors"]  # what was odd is told again
    assert asked(home) == 1
    os.utime(made, (1, 1))
    listed(home)
    made.write_text(made.read_text() + "# longer\n")
    os.utime(made, (1, 1))
    listed(home)
    assert asked(home) == 3
    listed(home)
    assert asked(home) == 3


@pytest.mark.parametrize(
    "content", ["", "nonsense", "[]", '{"version": "0", "programs": {}}', '{"programs": {"x": 1}}']
)
def test_a_corrupt_cache_is_made_anew(home: HomeDir, content: str) -> None:
    counting(home)
    cache = home.cru / "cache" / "schemas.json"
    cache.parent.mkdir(parents=True)
    cache.write_text(content)
    run = cru("plugin", "list", home=home)
    assert run.code == 0 and not run.err
    listed(home)
    assert asked(home) == 1


def test_without_a_place_for_the_cache_they_are_asked_each_time(home: HomeDir) -> None:
    counting(home)
    home.cru.mkdir(exist_ok=True)
    (home.cru / "cache").write_text("a file")
    for name in ("default", "second"):
        run = calls(home, "counted", flags=("-C", name))
        assert run.code == 0 and "Traceback" not in run.err
    assert asked(home) == 2
    assert results(home)[0] == "ran\n"


def test_a_key_that_is_nearly_one_is_told(home: HomeDir) -> None:
    tool(home, "fine", "echo")
    home.configure('[plugins.fine]\ntimout = 5\ncolour = "the program reads it itself"\n')
    assert listed(home)["fine"]["errors"] == ["[plugins.fine] timout has no effect; did you mean `timeout`?"]


@pytest.mark.slow
def test_one_that_does_not_end_is_waited_for_once(home: HomeDir) -> None:
    """Later runs know it by its failure; the list of plugins asks again, and so does a changed file."""
    log = home.project / "asked"
    hangs = f"#!/bin/bash\necho x >>{log}\nsleep 60\n"
    made = program(home, "stuck", hangs)
    script(home, *["fine"] * 9)
    for _ in range(3):
        run = cru("go", home=home, script=IMPATIENT)
        assert run.code == 0 and "stuck is not loaded: `--schema` does not end within 0.3 s" in run.err
        assert "and by `cru plugin list`" in run.err
    assert asked(home) == 1
    run = cru("plugin", "list", home=home, script=IMPATIENT)
    assert "does not end within" in run.out and asked(home) == 2
    os.utime(made, (1, 1))
    assert cru("go", home=home, script=IMPATIENT).code == 0 and asked(home) == 3
    assert cru("go", home=home, script=IMPATIENT).code == 0 and asked(home) == 3
    made.write_text(hangs.replace("sleep 60", f"echo '{GOOD}'"))
    assert cru("go", home=home, script=IMPATIENT).err == "" and asked(home) == 4


def test_any_other_failure_is_not_kept_for_the_next_run(home: HomeDir) -> None:
    log = home.project / "asked"
    program(home, "moody", f"#!/bin/bash\necho x >>{log}\nexit 1\n")
    assert listed(home)["moody"]["state"] == "error"
    assert asked(home) == 1
    assert listed(home)["moody"]["state"] == "error"
    assert asked(home) == 2


def test_at_a_cold_start_all_are_asked_at_the_same_time(home: HomeDir) -> None:
    meet = home.project / "meet"
    meet.mkdir()
    wait = f'if [[ $1 == --schema ]]; then touch {meet}/$(basename "$0"); until [[ $(ls {meet} | wc -l) == 5 ]]; do sleep 0.01; done; fi'
    for number in range(5):
        tool(home, f"member{number}", "echo", first=wait)
    assert {row["state"] for row in listed(home).values()} == {"active"}  # one after another, the first would never end


def test_what_is_gone_is_forgotten(home: HomeDir) -> None:
    made = counting(home)
    counting(home, "other")
    listed(home)
    made.unlink()
    counting(home, "third")
    listed(home)
    kept = msgspec.json.decode((home.cru / "cache" / "schemas.json").read_bytes())["programs"]
    assert sorted(Path(path).name for path in kept) == ["other", "third"]
