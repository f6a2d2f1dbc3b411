"""Views of plugins that a person opens: keys, state, sizes; and every way in which one can go wrong."""

from __future__ import annotations

import pytest
from tests.faces.asks import plugin, scripted
from tests.kit import HomeDir, cru, pty

LUA = """
local M = {}
local lines = 0

--- Counts.
-- @view name="counter" desc="counts keys"
function M.counter(ctx)
  return cru.oil.col(
    cru.oil.row("count " .. (ctx:get("count") or 0), cru.oil.spacer(), cru.oil.badge(ctx.width .. "x" .. ctx.height)),
    cru.oil.text("last " .. (ctx:get("last") or "none"), { bold = true }))
end

-- @view.handler name="counter"
function M.keys(key, ctx)
  if key == "x" then return ctx:close_view() end
  if key == "!" then error("no such key") end
  if key == "z" then cru.timer.sleep(60) end
  ctx:set("count", (ctx:get("count") or 0) + 1)
  ctx:set("last", key)
  return key == "q" and ctx:get("count") < 3
end
return M
"""
PYTHON = """
from cru import oil, timer

def counter(ctx):
    return oil.col(
        oil.row(f"count {ctx.get('count') or 0}", oil.spacer(), oil.badge(f"{ctx.width}x{ctx.height}")),
        oil.text("last " + (ctx.get("last") or "none"), {"bold": True}))

async def keys(key, ctx):
    if key == "x":
        return ctx.close_view()
    if key == "!":
        raise ValueError("no such key")
    if key == "z":
        await timer.sleep(60)
    ctx.set("count", (ctx.get("count") or 0) + 1)
    ctx.set("last", key)
    return key == "q" and ctx.get("count") < 3

VIEWS = {"counter": {"desc": "counts keys", "fn": counter, "handler": keys}}
"""
PLUGINS = pytest.mark.parametrize(("name", "code"), [("count.lua", LUA), ("count.py", PYTHON)])


@PLUGINS
def test_a_view_has_its_keys_and_its_state_while_it_is_open(home: HomeDir, name: str, code: str) -> None:
    scripted(home)
    plugin(home, code, name)
    with pty("/view", "counter", home=home) as terminal:
        terminal.expect_screen("last none")
        assert "[count] counter\ncount 0" in terminal.screen() and "[80x21]\n" in terminal.screen()
        for number, (key, shown) in enumerate(
            [("a", "a"), ("q", "q"), ("\x1b[A", "up"), (" ", "space"), ("\r", "enter"), ("\x07", "ctrl-g")], 1
        ):
            terminal.send(key)
            terminal.expect_screen(f"last {shown}\n")
            assert f"count {number} " in terminal.screen()
        terminal.resize(10, 40)
        terminal.expect_screen("[40x7]")
        terminal.send("x")
        assert terminal.wait() == 0


@pytest.mark.sample(1)
@PLUGINS
@pytest.mark.parametrize("key", ["esc", "c-c", "c-d", "q"])
def test_a_key_closes_a_view_in_the_chat_and_its_last_picture_stays(
    home: HomeDir, name: str, code: str, key: str
) -> None:
    scripted(home)
    plugin(home, code, name)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("/view counter")
        terminal.expect_screen("last none")
        terminal.send("aaa")
        terminal.expect_screen("count 3")
        terminal.send("q") if key == "q" else terminal.key(key)
        terminal.send("hi")  # what comes behind the key is none of the view's
        terminal.expect_screen("last a\n> hi")
        terminal.key("enter")
        terminal.expect("Hello")
        screen = terminal.screen()
        assert terminal.eof() == 0
    assert screen.count("count ") == 1 and "Esc closes" not in screen


BROKEN = [
    ("return 7", "the view bad of bad: a node or a text is wanted, got number; it is closed"),
    ("error('torn')", "the view bad of bad failed and is closed"),
    ("while true do end", "the view bad of bad failed and is closed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "told"), BROKEN)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_view_that_cannot_be_drawn_is_told_with_its_name(
    home: HomeDir, code: str, told: str, is_terminal: bool
) -> None:
    scripted(home)
    plugin(home, f"return {{ views = {{ bad = {{ fn = function(ctx) {code} end }} }} }}", "bad.lua")
    if not is_terminal:
        run = cru("/view", "bad", home=home)
        assert run.code != 0 and f"cru: {told}" in run.err
        return
    with pty("/view", "bad", home=home) as terminal:
        terminal.expect(f"cru: {told[:70]}")
        assert terminal.wait() != 0


@pytest.mark.sample(1)
@PLUGINS
@pytest.mark.parametrize(
    ("key", "told"),
    [("!", "the view counter of count failed and is closed"), ("z", "the view counter of count took longer")],
)
def test_a_handler_that_fails_or_never_returns_closes_the_view(
    home: HomeDir, name: str, code: str, key: str, told: str
) -> None:
    scripted(home)
    plugin(home, code, name)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("/view counter")
        terminal.expect_screen("last none")
        terminal.send(key)
        terminal.expect(told)
        terminal.line("hi")
        terminal.expect("Hello")
        assert terminal.eof() == 0


@pytest.mark.slow
@pytest.mark.parametrize("work", ["await timer.sleep(60)", "while True: pass"])
def test_ctrl_c_ends_a_view_that_does_not_come_back(home: HomeDir, work: str) -> None:
    scripted(home)
    code = f"async def stuck(ctx):\n    open('begun', 'w').close()\n    {work}\n"
    plugin(home, f"from cru import timer\n\n{code}\nVIEWS = {{'stuck': {{'fn': stuck}}}}\n", "stuck.py")
    with pty("/view", "stuck", home=home) as terminal:
        while not (home.project / "begun").exists():
            terminal.screen()
        for _ in range(2):
            terminal.key("c-c")
        assert terminal.wait() in (0, 1, 130)


@pytest.mark.sample(1)
@PLUGINS
def test_where_nothing_changes_a_view_is_shown_once(home: HomeDir, name: str, code: str) -> None:
    scripted(home)
    plugin(home, code, name)
    drawn = f"count 0{' ' * 66}[80x24]\nlast none\n"
    assert cru("/view", "counter", home=home).out == drawn
    with pty("/view", "counter", home=home, env={"TERM": "dumb"}) as terminal:
        assert terminal.wait() == 0
    assert terminal.text == drawn
    assert cru("/view", home=home).out == "counter  counts keys (count)\n"
    run = cru("/view", "countr", home=home)
    assert run.code == 2 and "there is no view countr" in run.err and "did you mean `counter`?" in run.err


def test_views_go_with_their_plugin_and_no_name_is_taken_twice(home: HomeDir) -> None:
    scripted(home)
    plugin(home, LUA, "count.lua")
    plugin(home, PYTHON, "other.py")
    run = cru("/view", home=home)
    assert run.out == "counter  counts keys (count)\n"
    assert "cru: other: the view counter is left out: count has a view of that name" in run.err
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("/plugin disable count")
        terminal.expect("disabled")
        terminal.line("/view")
        terminal.expect("no plugin has a view")
        assert terminal.eof() == 0


def test_a_spinner_moves_and_a_view_draws_itself_anew(home: HomeDir) -> None:
    scripted(home)
    draw = """function(ctx)
      if not ctx:get("begun") then
        ctx:set("begun", true)
        cru.spawn(function()
          while not cru.fs.exists("go") do cru.timer.sleep(0.02) end
          ctx:set("done", true)
          ctx:redraw()
        end)
      end
      return ctx:get("done") and "it is done" or cru.oil.spinner("at work")
    end"""
    plugin(home, f"return {{ views = {{ work = {{ fn = {draw} }} }} }}", "work.lua")
    with pty("/view", "work", home=home) as terminal:
        for picture in "⠋⠙⠹":
            terminal.expect(picture)
        (home.project / "go").touch()
        terminal.expect_screen("it is done\nEsc closes")
        terminal.key("esc")
        assert terminal.wait() == 0
