"""Which files a hook runs, by whatever road its command takes to them; and what is said where that cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import about
from tests.core.hooks.test_trust import entry, named, put

from cru.core.hooks.trust.files import LookupBudget
from cru.core.hooks.trust.fingerprint import take_fingerprint

DEEP = "a/b/c/d/e/x.sh"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "bash", "args": ("-c", "sh tools/x.sh --now")},
        {"command": "env", "args": ("sh", "-c", "cd tools; ./x.sh")},
        {"command": "$RUN", "env": {"RUN": "sh tools/x.sh"}},
        {"command": "bash <>tools/x.sh"},
        {"command": "bash 3<>tools/x.sh <&3"},
        {"command": "cd -- tools && ./x.sh"},
        {"command": "cd -P -- 'tools'&&sh x.sh"},
        {"command": "env -C tools ./x.sh"},
        {"command": "make -C tools -f x.sh"},
        {"command": "d=tools n=x.sh; cd $d; sh $n"},
        {"command": 'echo > "$(sh tools/x.sh)"'},
        {"command": "git -c core.fsmonitor=tools/x.sh status"},
        {"command": 'os.execute("sh tools/x.sh")', "kind": "lua"},
        {"command": "PATH=tools:/bin x.sh"},
        {"command": "x.sh", "env": {"PATH": "tools:/usr/bin"}},
        {"command": 'function g { "$CRUSH_PROJECT_DIR"/tools/x.sh; }; g'},
        {"command": 'g() { "$CRUSH_PROJECT_DIR"/tools/x.sh; }; g'},
        {"command": 'g() { tools/x"."sh; }; g'},
        {"command": 'case x in (x) "tools"/x.sh ;; esac'},
        {"command": '[ a = b ) ; tools/"x.sh"'},
        {"command": '"$CLAUDE_PROJECT_DIR"/tools/x.sh'},
        {"command": 'sh "${GEMINI_CWD}/tools/x.sh"'},
    ],
)
def test_a_file_is_found_by_whatever_road(tmp_path: Path, given: dict[str, Any]) -> None:
    put(tmp_path, "tools/x.sh")
    assert "tools/x.sh" in named(tmp_path, given.pop("command"), **given)


def test_any_number_of_folders(tmp_path: Path) -> None:
    put(tmp_path, DEEP)
    assert named(tmp_path, "cd a && cd b && cd c && cd d && cd e && ./x.sh") == {DEEP}
    seen = take_fingerprint(entry(tmp_path, " && ".join(f"mkdir f{n}; cd f{n}" for n in range(80))), about(tmp_path))
    assert seen.unseen == ()
    put(tmp_path, *(f"f{n}/x" for n in range(80)))
    seen = take_fingerprint(entry(tmp_path, " && ".join(f"cd f{n}" for n in range(80))), about(tmp_path))
    assert "the command may stand in more than 64 folders; only these were looked at" in seen.unseen


@pytest.mark.parametrize("command", ["node ./mod", "python3 mod", "python3 -u mod", "deno ./mod"])
def test_a_folder_that_an_interpreter_gets_is_all_of_it(tmp_path: Path, command: str) -> None:
    put(tmp_path, "mod/index.js", "mod/lib/more.js")
    assert named(tmp_path, command) == {"mod/index.js", "mod/lib/more.js"}
    one = entry(tmp_path, command)
    before = take_fingerprint(one, about(tmp_path))
    put(tmp_path, "mod/lib/new.js")
    after = take_fingerprint(one, about(tmp_path))
    assert before.fingerprint != after.fingerprint and before.stats != after.stats


def test_the_whole_project_as_a_program_is_told_not_read(tmp_path: Path) -> None:
    put(tmp_path, "index.js")
    seen = take_fingerprint(entry(tmp_path, "node ."), about(tmp_path))
    assert seen.files == () and f"what `node` finds in {tmp_path}" in seen.unseen


def test_a_folder_that_a_script_only_works_on_is_none_of_it(tmp_path: Path) -> None:
    put(tmp_path, "lint.py", "src/a.py")
    assert named(tmp_path, "python3 lint.py src") == {"lint.py"}


def test_a_program_of_the_project_that_is_found_on_path(tmp_path: Path) -> None:
    put(tmp_path, "bin/mytool")
    (tmp_path / "bin" / "mytool").chmod(0o755)
    seen = take_fingerprint(entry(tmp_path, "mytool --now"), about(tmp_path, env={"PATH": f"/usr/bin:{tmp_path}/bin"}))
    assert [file.path for file in seen.files] == [f"{tmp_path}/bin/mytool"] and seen.unseen == ()


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("make check", "what `make` starts is not looked at"),
        ("true; npm test", "what `npm` starts is not looked at"),
        ("/usr/bin/make check", "what `/usr/bin/make` starts is not looked at"),
        ("python3 -m tool", "what the options of `python3` make it run: -m"),
        ("sudo true", "`sudo`, which runs other commands"),
        ("cat tools/?.sh | sh", "what `sh` starts is not looked at"),
        ("for f in tools/*.sh; do sh $f; done", "what `sh` starts is not looked at"),
    ],
)
def test_what_nobody_can_tell_is_said(tmp_path: Path, command: str, what: str) -> None:
    put(tmp_path, "tools/x.sh")
    assert any(what in text for text in take_fingerprint(entry(tmp_path, command), about(tmp_path)).unseen)


def test_plain_programs_and_scripts_that_are_shown_need_no_word(tmp_path: Path) -> None:
    put(tmp_path, "h.sh", "g.py")
    for command in ("cat | jq .x > log", "sh h.sh", "python3 -u g.py --fast", "./h.sh && echo ok"):
        assert take_fingerprint(entry(tmp_path, command), about(tmp_path)).unseen == (), command


def test_folders_that_programs_load_from_are_told_and_count(tmp_path: Path) -> None:
    put(tmp_path, "lib/json.py", "g.py")
    seen = take_fingerprint(entry(tmp_path, "python3 g.py", env={"PYTHONPATH": "/usr/x:lib"}), about(tmp_path))
    assert seen.unseen == ("what `PYTHONPATH=/usr/x:lib` makes programs run",)
    assert [file.path for file in seen.files] == [f"{tmp_path}/g.py", f"{tmp_path}/lib/json.py"]


@pytest.mark.parametrize(
    "name", ["BASH_ENV", "ENV", "BASH_FUNC_ls%%", "PERL5OPT", "LD_PRELOAD", "GIT_SSH_COMMAND", "PAGER", "PATH"]
)
def test_variables_that_are_code_are_told(tmp_path: Path, name: str) -> None:
    for given in ({"command": "true", "env": {name: "x"}}, {"command": f"{name.removesuffix('%%')}=x true"}):
        seen = take_fingerprint(entry(tmp_path, **given), about(tmp_path))
        assert any("makes programs run" in text and name.removesuffix("%%") in text for text in seen.unseen), given


@pytest.mark.parametrize("value", ["$(id)", "`id`", "$UNKNOWN"])
def test_a_value_that_may_be_computed_is_told(tmp_path: Path, value: str) -> None:
    seen = take_fingerprint(entry(tmp_path, "true", env={"A": value, "B": "$CLAUDE_PROJECT_DIR"}), about(tmp_path))
    assert seen.unseen == (f"`A={value}` may be computed when it runs",)


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("os.execute('id')", ["os.execute"]), ("return io.popen('id')", ["io.popen"]), ("load('x')()", ["load"]),
        ("dofile('x')", ["dofile"]), ("cru.shell.exec('id')", ["shell.exec"]), ("return { cancel = true }", []),
    ],
)  # fmt: skip
def test_code_in_the_entry_that_runs_something_is_told(tmp_path: Path, code: str, calls: list[str]) -> None:
    seen = take_fingerprint(entry(tmp_path, code, kind="lua"), about(tmp_path))
    assert [text for text in seen.unseen if "in its code" in text] == [
        f"what `{call}` in its code runs" for call in calls
    ]


@pytest.mark.parametrize("name", ["python3", "make", "node"])
def test_a_file_with_the_name_of_a_program_does_not_stand_for_it(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    seen = take_fingerprint(entry(tmp_path, f"{name} -c code"), about(tmp_path))
    assert any(text.startswith("what") and f"`{name}`" in text for text in seen.unseen)


def test_where_a_computed_folder_leads_is_told(tmp_path: Path) -> None:
    put(tmp_path, "x.sh")
    assert take_fingerprint(entry(tmp_path, "cd $D && ./x.sh"), about(tmp_path)).unseen == ("where `cd $D` leads",)


@pytest.mark.parametrize(
    "command",
    [
        "# style ->\n./x.sh", "echo $'\\'' a ' > '; ./x.sh; echo ' '", "sh ./x.sh>log", "cat <<A >\n./x.sh\nA", "sh >\n./x.sh",
        "exec 3>>x.sh; sh /dev/fd/3", "sh /dev/stdout >>x.sh", 'echo "$(echo "a > ")"; ./x.sh', "echo `echo ' > '`; ./x.sh; echo '",
        "sh -c 'tee() { sh $1; }'; tee() { sh $1; }; tee x.sh", "tee log x.sh; ./x.sh", "tee a\"$(cat ./x.sh)\"", "tee >(sh ./x.sh)",
        "echo `echo \\` > a`; ./x.sh`", "y=$(case a in a) echo > './x.sh;; esac) '; ./x.sh", "echo a\\ 2>x.sh; sh ./x.sh",
        'echo "`echo " > "`"; ./x.sh "`', "alias q='echo \"'\nq > \"; ./x.sh\"", "echo $# > log; ./x.sh # >",
        "echo ${a#' > '}; ./x.sh", "echo a\\ # >\n./x.sh", "true; # '\n./x.sh # '",
    ],
)  # fmt: skip
def test_nothing_that_runs_looks_like_what_is_written(tmp_path: Path, command: str) -> None:
    put(tmp_path, "x.sh")
    assert "x.sh" in named(tmp_path, command)


def test_a_name_that_ends_in_a_digit_is_no_stream(tmp_path: Path) -> None:
    put(tmp_path, "x2", "log")
    assert named(tmp_path, "sh ./x2>log") == {"x2"}


@pytest.mark.parametrize(
    "command",
    [
        "./h.sh >> log",
        'I=$(cat); echo "$I" >>log',
        'echo "$(date) x" >> "$CLAUDE_PROJECT_DIR"/log',
        "a 2>log | b >'log'\nc >| log",
        "tee -a log >/dev/null",
        "jq . | /usr/bin/tee log 2>&1 | cat",
        'echo "$(date +"%F") $(jq -r .tool_name)" >> log',
        "jq -c . >> log # log it",
        "ts=`date`; echo $ts >> log",
        "time tee log",
        "time -p tee -a log",
        "! time tee log >/dev/null",
        "coproc tee log",
        "coproc N { cat > log; }",
        "if a; then b; elif tee log; then c; fi",
        "while tee log; do :; done",
        "jq . > \\\nlog",
        "jq . 2>> \\\n  log",
        "tee \\\n log",
    ],
)
def test_its_own_log_is_no_part_of_it(tmp_path: Path, command: str) -> None:
    put(tmp_path, "log")
    assert named(tmp_path, command) == set()


@pytest.mark.parametrize("name", ["log.txt", "a.log", "x.jsonl", "x.json", "x.csv", "x.md"])
def test_a_file_of_data_that_a_script_is_given_is_not_watched(tmp_path: Path, name: str) -> None:
    put(tmp_path, "fmt.py")
    (tmp_path / "fmt.py").chmod(0o755)
    one = entry(tmp_path, f"python3 fmt.py --log={name} && ./fmt.py {name}; test -e {name} || touch {name}")
    before = take_fingerprint(one, about(tmp_path))
    (tmp_path / name).write_text("begun")
    after = take_fingerprint(one, about(tmp_path))
    assert before.fingerprint == after.fingerprint and after.data == (f"{tmp_path}/{name}",)
    (tmp_path / name).write_text("#!/bin/sh\n")
    assert take_fingerprint(one, about(tmp_path)).fingerprint != before.fingerprint
    (tmp_path / name).write_text("begun")
    (tmp_path / name).chmod(0o755)
    assert take_fingerprint(one, about(tmp_path)).fingerprint != before.fingerprint


@pytest.mark.parametrize(
    "command",
    [
        "sh log.txt", ". ./log.txt", "source log.txt", "python3 log.txt", "./log.txt", "sh < log.txt", "cat log.txt | sh",
        "node -r ./log.txt x.js",
        "eval $(cat log.txt)", "sh -c '. ./log.txt'", "sh --rcfile log.txt x.sh", "cp log.txt x.sh; sh x.sh", "cat log.txt > x.sh; sh x.sh",
        "ln -s log.txt y; ./x.sh", "grep -qf log.txt", "jq -f log.txt", "f=log.txt; sh $f", "xargs -a log.txt sh",
        "BASH_ENV=log.txt ./x.sh",
        "./x.sh log.txt; sh ./log.txt", "./x.sh log.txt $(cat y)", "awk -f log.txt", "make -f log.txt", "! ./log.txt",
    ],
)  # fmt: skip
def test_a_file_of_data_that_may_become_code_is_watched(tmp_path: Path, command: str) -> None:
    put(tmp_path, "x.sh")
    (tmp_path / "x.sh").chmod(0o755)
    (tmp_path / "log.txt").write_text("begun")
    assert "log.txt" in named(tmp_path, command)


def test_what_names_too_much_is_not_looked_at_and_soon(tmp_path: Path) -> None:
    put(tmp_path, *(f"d{n}/x" for n in range(70)))
    one = entry(tmp_path, " ".join(f"d{n % 70}/../d{n}" for n in range(600)))
    budget = LookupBudget(lookups=2000)
    assert take_fingerprint(one, about(tmp_path), budget).over and budget.lookups < 0
    assert take_fingerprint(entry(tmp_path, "d1/x"), about(tmp_path), LookupBudget(size=3)).over
    assert not take_fingerprint(entry(tmp_path, "d1/x"), about(tmp_path)).over


def test_a_file_of_any_size_is_no_reason_to_wait(tmp_path: Path) -> None:
    put(tmp_path, "big")
    with open(tmp_path / "big", "wb") as file:
        file.truncate(50 << 30)
    one = entry(tmp_path, "./big")
    before = take_fingerprint(one, about(tmp_path))
    assert f"{tmp_path}/big is shown up to byte 0 only" in before.unseen
    with open(tmp_path / "big", "r+b") as file:
        file.write(b"x")
    assert take_fingerprint(one, about(tmp_path)).fingerprint != before.fingerprint
