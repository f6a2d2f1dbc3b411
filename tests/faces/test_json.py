"""`--json`: a program reads every line, and docs/json.md lists what it may find."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from tests.kit import Call, Done, Hang, HomeDir, Reply, Status, cru, server, start

from cru.core.events.catalog import CATALOG
from cru.core.events.stamp import Stamp
from cru.core.turn.turn import LegResult
from cru.faces.cli.json_mode.face import NAMES, OUTPUT, RESULT, VERSION

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
OWN_FIELDS = {OUTPUT: "text", RESULT: ", ".join(LegResult.__struct_fields__)}


def lines(run: Done) -> list[dict[str, Any]]:
    """Every line as an object; fails on one that is none."""
    found = [msgspec.json.decode(line) for line in run.out.splitlines()]
    for line in found:
        assert line["v"] == VERSION and line["type"] in kinds() and isinstance(line["payload"], dict), line
    return found


def fields(payload: type[Struct]) -> str:
    return ", ".join(payload.__struct_fields__)


def kinds() -> dict[str, str]:
    """Type of line → its payload's fields, as the program has them."""
    events = {row.name: fields(row.payload) for row in CATALOG if row.live}
    return {**events, **{name: fields(kind) for kind, name in NAMES.items()}, **OWN_FIELDS}


def documented() -> dict[str, str]:
    """The same as the page has them."""
    table = PAGE.read_text().partition("## Reading it")[0]
    rows = re.findall(r"^\| `([\w:]+)` \| (.*?) \|$", table, re.MULTILINE)
    return {name: ", ".join(re.findall(r"`(\w+)`", listed)) for name, listed in rows}


def test_the_page_lists_every_kind_of_line_with_its_fields() -> None:
    table = "\n".join(
        f"| `{name}` | {', '.join(f'`{f}`' for f in listed.split(', '))} |" for name, listed in kinds().items()
    )
    assert documented() == kinds(), f"the table in {PAGE} should be\n{table}"


def test_the_page_names_the_version_and_the_fields_of_the_stamp() -> None:
    text = PAGE.read_text()
    assert f"`v` is {VERSION}" in text
    for name in Stamp.__struct_fields__:
        assert f"`{name}`" in text


def test_a_turn_with_a_tool_is_told_from_start_to_result(home: HomeDir) -> None:
    with server([Reply("looking", calls=[Call("bash", {"command": "echo out"})]), Reply("done", pieces=2)]) as model:
        home.configure(url=model.url)
        run = cru("--json", "-t", "hi", home=home)
    assert (run.code, run.err) == (0, "")
    found = lines(run)
    types = [line["type"] for line in found]
    wanted = ["session:started", "message:received", "leg:started", "streaming:delta", "agent:responded", "tool:before_call",
              "tool:called", "tool:output", "tool:completed", "tool:batch_completed", "turn:complete", "session:idle",
              "session:ended", "result"]  # fmt: skip
    places = [types.index(name) for name in wanted]
    assert places == sorted(places) and types[-1] == "result" and types.count("result") == 1
    assert "".join(x["payload"]["delta"] for x in found if x["type"] == "streaming:delta") == "lookingdone"
    result = found[-1]
    assert (result["code"], result["resume"]) == (0, "")
    assert result["payload"]["cause"] == "done" and result["payload"]["response"] == "done"


def test_every_delivered_event_has_a_stamp_and_they_are_in_order(home: HomeDir) -> None:
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        found = lines(cru("--json", "hi", home=home))
    stamps = [line["stamp"] for line in found if "stamp" in line]
    numbers = [stamp["dispatch_seq"] for stamp in stamps]
    assert numbers == sorted(numbers) and len({stamp["run_id"] for stamp in stamps}) == 1
    unstamped = {line["type"] for line in found if "stamp" not in line}
    assert unstamped <= {*NAMES.values(), "streaming:delta", "agent:thinking", RESULT}


def test_lines_come_at_once_while_the_turn_runs(home: HomeDir) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with start("--json", "hi", home=home) as run:
            run.wait_for('"delta":"so far"')
            run.interrupt()
            found = lines(run.wait())
    assert found[-1]["code"] == 130 and found[-1]["payload"]["cause"] == "interrupted"
    assert found[-1]["resume"] == "cru -C default --resume"


@pytest.mark.parametrize("text", ["a\nb\r\n", "\x1b[31m\x00\x7f", "ünï \u2028 \U0001f600"])
def test_any_text_stays_on_one_line_and_arrives_whole(home: HomeDir, text: str) -> None:
    with server([Reply(text)]) as model:
        home.configure(url=model.url)
        run = cru("--json", text.replace("\x00", ""), home=home)
    found = [msgspec.json.decode(line) for line in run.out.encode().split(b"\n")[:-1]]
    assert found[-1]["payload"]["response"] == text


def broken_config(home: HomeDir) -> None:
    home.configure("modle = 1\n")


def nothing(home: HomeDir) -> None:
    pass


@pytest.mark.parametrize(
    ("words", "prepare", "code"),
    [(("hi",), broken_config, 1), (("-C", "a/b", "hi"), nothing, 2), (("--resume",), nothing, 1), ((), nothing, 2)],
)
def test_a_run_that_comes_to_no_turn_still_ends_with_a_result(
    home: HomeDir, words: tuple[str, ...], prepare: Callable[[HomeDir], None], code: int
) -> None:
    prepare(home)
    run = cru("--json", *words, home=home)
    result = lines(run)[-1]
    assert run.code == code and result["type"] == "result" and result["code"] == code
    assert result["payload"]["cause"] == "error" and result["payload"]["error"] in run.err


def test_an_error_of_the_model_stands_in_the_result(home: HomeDir) -> None:
    with server([Status(400, body="no such thing")]) as model:
        home.configure(url=model.url)
        result = lines(cru("--json", "hi", home=home))[-1]
    assert result["code"] == 1 and "no such thing" in result["payload"]["error"]
    assert result["resume"] == "cru -C default --resume"


def test_no_model_stands_in_the_result(home: HomeDir) -> None:
    result = lines(cru("--json", "--model", "openai:x", "hi", home=home))[-1]
    assert result["code"] == 5 and "OPENAI_API_KEY" in result["payload"]["hint"]


def test_operations_print_objects_too(home: HomeDir) -> None:
    found = lines(cru("--json", "-L", "-n", "todos", home=home))
    assert [line["payload"].get("text") for line in found[:-1]] == ["* default", "(no todos)"]
    assert found[-1]["type"] == "result" and found[-1]["code"] == 0


def test_warnings_are_notices_on_stdout_not_lines_on_stderr(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        (home.cru / "state.json").write_text("{broken")
        run = cru("--json", "hi", home=home)
    notices = [line["payload"] for line in lines(run) if line["type"] == "notice"]
    assert run.err == "" and any("state.json" in notice["text"] for notice in notices)
