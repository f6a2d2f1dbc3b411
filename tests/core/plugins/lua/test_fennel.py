"""Plugins and suites in Fennel: compiled by the `fennel.lua` of the user, with the lines of their source."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.core.turn.support import World
from tests.kit import Call, HomeDir, Reply, cru, server

from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.lua.fennel import FILE, SHARED, FennelCompiler, FennelPlace, export_annotated
from cru.core.plugins.lua.runtime import LuaVM
from cru.core.plugins.manager import Extensions

STAND_IN = Path(__file__).parents[3] / "data" / "fennel" / "fennel.lua"
REAL = os.environ.get("CRU_TEST_FENNEL", "")
COMPILERS = [STAND_IN, *([Path(REAL)] if REAL else [])]

GUARD = """;; a guard
(local words (require :words))

;;; Holds the shell back.
;; @handler event="tool:before_call" pattern="bash" priority=10
(fn on-shell [ctx event]
  {:cancel true :reason (.. "no " words.shell "; yet (")})

;;; Adds two numbers.
;; @tool name="add"
;; @param a number the first
;; @param b number the second
(fn add [args] (+ args.a args.b))

{:health (fn [] (cru.health.ok "well"))}
"""
SUITE = """(local guard (require :guard))
(describe "guard"
  (fn []
    (it "knows its words" (fn [] (assert.equal "shells" (. (require :words) :shell))))
    (it "has a check" (fn [] (assert.is_function guard.health)))
    (it "fails"
      (fn []
        (assert.equal 1 2)))))
"""


def install(home: HomeDir, compiler: Path | None = STAND_IN, **files: str) -> Path:
    """The plugin `guard` with its helper, and these files in the place of its own; a compiler in cru's home."""
    folder = home.cru / "plugins" / "guard"
    for name, text in {"init": GUARD, "lua/words": "{:shell :shells}\n", "tests/guard_test": SUITE, **files}.items():
        file = folder / f"{name}.fnl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if compiler is not None:
        shutil.copy(compiler, home.cru / "fennel.lua")
    return folder


def compiled(source: str, compiler: Path = STAND_IN) -> str:
    return FennelCompiler(FennelPlace(str(compiler), Path("/nowhere"))).compile(source.encode(), Path("/p/a.fnl"))


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda path: path.parent.name)
def test_a_guard_in_fennel_holds_and_its_tool_works(home: HomeDir, compiler: Path) -> None:
    install(home, compiler)
    calls = Reply(calls=[Call("bash", {"command": "touch gone"}), Call("add", {"a": 2, "b": 3})])
    with server([calls, Reply("done")]) as model:
        home.configure("", url=model.url)
        run = cru("--mode", "trust", "go", home=home)
    assert (run.code, run.out, run.err) == (0, "done\n", "[tool bash hook: Blocked by guard: no shells; yet (]\n")
    answers = [message["content"] for message in model.requests[-1].body["messages"] if message["role"] == "tool"]
    assert "no shells; yet (" in answers[0] and answers[1] == "5"


def test_the_list_the_check_and_the_health_of_a_plugin_in_fennel(home: HomeDir) -> None:
    install(home)
    (row,) = [
        row for row in msgspec.json.decode(cru("plugin", "list", "--json", home=home).out) if row["layer"] == "user"
    ]
    assert (row["language"], row["state"], row["tools"]) == ("lua", "active", ["add"])
    assert [handler["event"] for handler in row["handlers"]] == ["tool:before_call"]
    assert "well" in cru("plugin", "health", "guard", home=home).out
    install(home, health='{:check (fn [] (cru.health.ok "as said in a file"))}')
    assert "as said in a file" in cru("plugin", "health", "guard", home=home).out
    assert cru("hooks", "check", home=home).code == 0


def test_a_suite_in_fennel_is_run_and_its_failures_have_their_line(home: HomeDir) -> None:
    install(home)
    run = cru("plugin", "test", "guard", home=home)
    assert run.code == 1 and "2 passed, 1 failed" in run.out and "guard_test.fnl:7: Expected: 1 / Actual: 2" in run.out


NAMED = "[lua]\nfennel = '/nowhere/fennel.lua'\n"
# settings → what is told of a plugin without a compiler
MISSING = {
    "": "it is written in Fennel, and there is no fennel.lua",
    NAMED: "[lua] fennel: there is no file /nowhere/fennel.lua",
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", MISSING, ids=["nowhere", "named"])
@pytest.mark.skipif(any((folder / FILE).exists() for folder in SHARED), reason="this system has a compiler of Fennel")
def test_a_plugin_without_a_compiler_is_told_and_a_strict_run_does_not_begin(home: HomeDir, settings: str) -> None:
    install(home, None)
    with server([Reply("done"), Reply("never")]) as model:
        home.configure(settings, url=model.url)
        run = cru("go", home=home)
        strict = cru("--strict-hooks", "go", home=home)
        home.configure(f"{settings}[plugins.guard]\nrequired = true\n", url=model.url)
        required = cru("go", home=home)
    assert run.code == 0 and MISSING[settings] in run.err and "https://fennel-lang.org" in run.err
    assert strict.code == required.code == 3 and len(model.requests) == 1
    assert MISSING[settings] in strict.err and MISSING[settings] in required.err
    check = cru("hooks", "check", home=home)
    assert check.code != 0 and MISSING[settings] in check.out + check.err
    assert MISSING[settings] in cru("plugin", "test", "guard", home=home).out


def test_a_plugin_in_fennel_is_loaded_anew_and_holds_on_when_it_cannot_be(tmp_path: Path) -> None:
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(STAND_IN, tmp_path / "home" / "fennel.lua")
    file = plugins / "a.fnl"
    world = World(tmp_path, "")
    extensions = Extensions(PluginFolders(tmp_path / "home", tmp_path / "project"), {}, tmp_path / "home")

    async def run() -> list[str]:
        said: list[str] = []
        for code in ('(cru.on "turn:complete" (fn []))', '(cru.on "session:started" (fn []))', "(fn half ["):
            file.write_text(code)
            try:
                await (extensions.reload("a") if extensions.session else extensions.open(world.session.parts))
            except PluginFailed as error:
                said.append(error.message)
            handlers = world.session.parts.bus.registry.by_event
            said += [
                event
                for event in ("turn:complete", "session:started")
                if any(h.owner == "a" for h in handlers.get(event, ()))
            ]
        await extensions.close()
        return said

    one, two, problem, still = asyncio.run(run())
    assert (one, two, still) == ("turn:complete", "session:started", "session:started")
    assert f"{file}:1:1: Parse error" in problem and "the version before stays active" in problem


# what stands in a file of Fennel → the same, with the annotated functions as globals
EXPORTS = {
    "(fn plain [] 1)": "(fn plain [] 1)",
    ";; @tool\n(fn add-all [] 1)\n1": ";; @tool\n(fn add-all [] 1) (tset _G :add-all add-all)\n1",
    ';; @tool\n(fn a []\n  ")\\"" ; )\n  1) 2': ';; @tool\n(fn a []\n  ")\\"" ; )\n  1) (tset _G :a a) 2',
    ";; @tool\n(fn M.a [] 1)": ";; @tool\n(fn M.a [] 1)",
    ";; @tool\n(λ a [] 1)": ";; @tool\n(λ a [] 1) (tset _G :a a)",
    ";; @tool\n(local a (fn [] 1))": ";; @tool\n(local a (fn [] 1)) (tset _G :a a)",
}


@pytest.mark.parametrize("source", EXPORTS)
def test_annotated_functions_can_be_found(source: str) -> None:
    assert export_annotated(source) == EXPORTS[source]


def test_lines_stay_what_they_are() -> None:
    vm = LuaVM()
    chunk = vm.load(compiled('(local a 1)\n\n(fn f []\n  (error "here"))\n(f)\n'), "@/p/a.fnl")
    with pytest.raises(Exception, match="here") as raised:
        vm.start(chunk)
    assert raised.value.where == "/p/a.fnl:4"  # type: ignore[attr-defined]


# code that a macro might run → what it gets
INSIDE = {
    'return (io.open("/etc/passwd")) == nil and io.popen("true") == nil': "true",
    'return loadfile("/etc/passwd") == nil and os.execute == nil and os.remove == nil and os.getenv("HOME") == nil': "true",
    'return package.searchpath("passwd", "/etc/?") == nil and not pcall(require, "words")': "true",
    'return require("io").open("/etc/passwd") == nil and require("os").execute == nil': "true",
    "return tostring(cru)": "nil",
}


@pytest.mark.parametrize("code", INSIDE)
def test_the_compiler_has_no_files_and_no_programs(code: str) -> None:
    quoted = code.replace('"', "'")
    assert compiled(f'(local a (eval-compiler "{quoted}"))') == f'local a = "{INSIDE[code]}"; '


# what a macro does that never ends, or fills the memory → what is told
ENDLESS = {"while true do end": "longer", "local t = 'x' while true do t = t .. t end": "memory"}


@pytest.mark.slow
@pytest.mark.parametrize("code", ENDLESS)
def test_the_compiler_has_limits(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.core.plugins.lua.fennel.RUN_SECONDS", 0.05)
    with pytest.raises(PluginFailed) as raised:
        compiled(f'(local a (eval-compiler "{code}"))')
    assert "/p/a.fnl" in raised.value.message, raised.value.message


# what is no compiler → what is told
BROKEN: Sequence[tuple[str, str]] = (("return {}", "no function compileString"), ("local", "no compiler of Fennel"))


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_what_is_no_compiler_is_told(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "fennel.lua").write_text(text)
    with pytest.raises(PluginFailed, match=problem):
        compiled("1", tmp_path / "fennel.lua")
