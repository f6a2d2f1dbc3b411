"""`cru hooks check` on plugins: they guard as hooks do, and none of them is run."""

from __future__ import annotations

from tests.faces.hooked import hooks, model
from tests.faces.test_hooks_check import check, own
from tests.kit import HomeDir, cru


def test_plugins_and_programs_are_counted_and_read_without_running_any(home: HomeDir) -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True)
    (folder / "fine.lua").write_text('cru.fs.write("ran", "x")\n')
    (folder / "broken.lua").write_text("local x =\n")
    handler = '-- @handler event="tool:before_cal" pattern="x"\nfunction f() end\n'
    (folder / "deaf.lua").write_text(
        handler + handler.replace("_cal", "_call").replace('"x"', '"bsh"').replace("f()", "g()")
    )
    (folder / "snake.py").write_text("def f(:\n")
    program = folder / "program"
    program.write_text("#!/nowhere/python9\n")
    program.chmod(0o755)
    model(home, hooks="[plugins.guard]\nrequired = true\n[plugins.fine]\nrequired = true\nenabled = false\n")
    out = hooks(home, "check", code=1).out
    for text in (
        "broken.lua:2: broken: it is no Lua: unexpected symbol near <eof>",
        "deaf.lua:1: deaf: `tool:before_cal` is no event of cru; did you mean `tool:before_call`?",
        "deaf.lua:3: deaf: the pattern `bsh` fits no tool; did you mean `bash`?",
        "snake.py:1: snake: it is no Python: ",
        "program: program: the interpreter of program, /nowhere/python9, is not there",
        "plugins: guard: it is required, and there is no such plugin",
        "fine.lua: fine: it is required, and switched off",
        "0 hooks in 0 files: 0 active; 3 plugins; 1 program; ",
    ):
        assert text in out, out
    assert not (home.project / "ran").exists()


def test_plugins_of_a_project_that_nobody_accepted_wait(home: HomeDir) -> None:
    folder = home.project / ".cru" / "plugins"
    folder.mkdir(parents=True)
    (folder / "guard.lua").write_text("local x =\n")
    out = check(home, 1)
    assert f"waiting  {folder}/guard.lua: guard: awaits that you accept it (cru trust)" in out
    assert "1 plugin; 0 broken" in out


# files of plugins → matchers that fit a tool of theirs, and what is said of others
BRINGING = {
    "weather.lua": "--- Weather.\n-- @tool\nfunction weather() return 'x' end\n",
    "rain.py": "TOOLS = {'rain': {'desc': 'x', 'fn': lambda: 'x'}}\n",
    "program": '#!/bin/sh\necho \'{"name": "sunny", "description": "d", "parameters": {"type": "object"}}\'\n',
}


def test_a_matcher_for_a_tool_of_a_plugin_fits_as_it_does_in_a_run(home: HomeDir) -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True)
    for name, text in BRINGING.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755 if text.startswith("#!") else 0o644)
    guard = {"event": "tool:before_call", "command": "true"}
    own(home, *({**guard, "matcher": matcher} for matcher in ("^weather$", "rain", "bash|sunny")))
    (folder / "guard.lua").write_text(
        'cru.on("tool:before_call", function() end, { pattern = "{rain,sunny,weather}" })\n'
    )
    assert "0 broken, 0 odd" in check(home, 0)
    assert cru("--strict-hooks", "hello", home=home).code == 0
    own(home, {**guard, "matcher": "^wether$"})
    assert "did you mean `weather`?" in check(home, 1)
    assert cru("--strict-hooks", "hello", home=home).code == 3


def test_a_plugin_in_python_may_name_its_encoding(home: HomeDir) -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True)
    (folder / "guard.py").write_bytes(
        b"# -*- coding: latin-1 -*-\nfrom cru import on\non('tool:before_call', lambda ctx, event: None, name='caf\xe9')\n"
    )
    assert "0 broken, 0 odd" in check(home, 0)
    assert cru("--strict-hooks", "hello", home=home).code == 0
