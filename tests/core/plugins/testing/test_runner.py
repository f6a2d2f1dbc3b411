"""The runner of plugin tests and its mocks: what suites written for it may rely on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.turn.support import World

from cru.core.plugins.testing.report import TestReport
from cru.core.plugins.testing.runner import files_of, run_file

GOOD = 'describe("s", function() it("t", function() %s end) end)'


class Bench:
    """Writes test files of a plugin and runs them."""

    def __init__(self, path: Path) -> None:
        self.world = World(path, "")
        self.home = path / "home"
        self.folder = path / "demo"
        self.printed: list[str] = []

    def run(self, source: str, name: str = "tests/demo_test.lua") -> TestReport:
        file = self.write(name, source)
        return asyncio.run(
            run_file(file, self.folder, self.world.session.parts, self.home, self.printed.append),
        )

    def write(self, name: str, source: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return file

    def check_passes(self, body: str) -> None:
        report = self.run(GOOD % body)
        assert (report.passed, report.errors) == (1, ()), report

    def message(self, body: str) -> str:
        report = self.run(GOOD % body)
        assert report.failed == 1, report
        return report.errors[0].error


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_counts_and_places_of_failures(bench: Bench) -> None:
    report = bench.run(
        """describe("outer", function()
          it("passes", function() end)
          describe("inner", function()
            it("fails", function()
              assert.equal(1, 2)
            end)
            pending("later")
          end)
        end)"""
    )
    assert (report.passed, report.failed, report.pending) == (1, 1, 1)
    problem = report.errors[0]
    assert (problem.name, problem.suite) == ("fails", "outer / inner")
    assert problem.error == "Expected: 1 / Actual: 2"
    assert problem.where == f"{bench.folder}/tests/demo_test.lua:5"
    assert bench.printed == []


def test_inner_suites_run_before_the_outer_ones_own_tests(bench: Bench) -> None:
    bench.run(
        """describe("o", function()
          it("own", function() print("own") end)
          describe("i", function() it("inner", function() print("inner") end) end)
        end)"""
    )
    assert bench.printed == ["inner\n", "own\n"]


def test_hooks_before_run_from_outside_and_hooks_after_from_inside(bench: Bench) -> None:
    bench.run(
        """describe("o", function()
          before_each(function() print("b1") end)
          after_each(function() print("a1") end)
          describe("i", function()
            before_each(function() print("b2") end)
            after_each(function() print("a2") end)
            it("t", function() print("t") end)
          end)
        end)"""
    )
    assert "".join(bench.printed).split() == ["b1", "b2", "t", "a2", "a1"]


def test_a_failing_hook_before_fails_the_test_without_running_it(bench: Bench) -> None:
    report = bench.run(
        """describe("s", function()
          before_each(function() error("not ready") end)
          it("t", function() print("ran") end)
        end)"""
    )
    assert (report.failed, report.errors[0].error, bench.printed) == (1, "not ready", [])


def test_a_failing_hook_after_fails_a_test_that_had_passed(bench: Bench) -> None:
    report = bench.run(
        """describe("s", function()
          after_each(function() error("untidy") end)
          it("passes", function() end)
          it("fails", function() error("first") end)
        end)"""
    )
    assert [p.error for p in report.errors] == ["untidy", "first"]
    assert report.passed == 0


@pytest.mark.parametrize("name", ["it", "pending", "before_each", "after_each"])
def test_outside_of_describe_is_an_error(bench: Bench, name: str) -> None:
    report = bench.run(f'{name}("x", function() end)')
    assert report.failed == 1
    assert f"{name} must be called inside describe" in report.errors[0].error
    assert report.errors[0].line == 1


def test_an_error_in_a_describe_body_names_the_block(bench: Bench) -> None:
    report = bench.run('describe("broken", function() error("oh") end)')
    assert "Error in describe block 'broken': " in report.errors[0].error and "oh" in report.errors[0].error


def test_a_file_that_is_no_lua_is_one_failure_with_its_place(bench: Bench) -> None:
    report = bench.run("describe(\n)))")
    assert (report.failed, report.errors[0].line) == (1, 2)
    assert report.errors[0].file.endswith("demo_test.lua")


def test_a_test_that_never_ends_is_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.core.plugins.testing.runner.RUN_SECONDS", 0.1)
    report = bench.run(GOOD % "while true do end")
    assert report.failed == 1 and "ran longer than" in report.errors[0].error


@pytest.mark.parametrize(
    "body",
    [
        "assert(true) assert(1, 'note')",
        "assert.equal(1, 1) assert.equals('a', 'a') assert.deep_equal({ a = { 1 } }, { a = { 1 } })",
        "assert.truthy(0) assert.falsy(nil) assert.falsy(false) assert.is_nil(nil) assert.is_not_nil(false)",
        "assert.is_string('') assert.is_number(1) assert.is_table({}) assert.is_function(print)",
        "assert.has_error(function() error('a.b') end, 'a.b') assert.has_error(error)",
        "local a, b = {}, {} a.x, b.x = a, b assert.deep_equal(a, b)",
        "assert.equal('v', (assert('v')))",
        "cru.timer.sleep(0.001)",
    ],
)
def test_assertions_that_hold(bench: Bench, body: str) -> None:
    bench.check_passes(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("assert(false, 'said')", "said"),
        ("assert(nil)", "assertion failed!"),
        ("assert.equal('a', { 'b', c = 1 })", 'Expected: "a" / Actual: { "b", c = 1 }'),
        ("assert.equal({}, {})", "Expected: {} / Actual: {}"),
        ("assert.deep_equal({ 1 }, { 1, 2 })", "Expected: { 1 } / Actual: { 1, 2 }"),
        ("assert.deep_equal({ 1, 2 }, { 1 }, 'sizes')", "sizes: Expected: { 1, 2 } / Actual: { 1 }"),
        ("local a = {} a.a = a assert.equal(1, a)", "Expected: 1 / Actual: { a = {...} }"),
        ("assert.truthy(false)", "Expected: a true value / Actual: false"),
        ("assert.falsy(0)", "Expected: nil or false / Actual: 0"),
        ("assert.is_nil(false)", "Expected: nil / Actual: false"),
        ("assert.is_not_nil(nil)", "Expected: anything but nil / Actual: nil"),
        ("assert.is_table('t')", 'Expected: a table / Actual: "t"'),
        ("assert.has_error(function() end)", "Expected: an error / Actual: no error"),
        ("assert.has_error(function() error('aXb') end, 'a.b')", 'Expected: an error with "a.b"'),
        ("error({ message = 'a table' })", "a table"),
    ],
)
def test_assertions_that_fail_say_what_was_expected(bench: Bench, body: str, message: str) -> None:
    assert message in bench.message(body)


def test_the_place_is_that_of_the_assertion_in_another_file(bench: Bench) -> None:
    bench.write("lua/helper.lua", "local M = {}\nfunction M.check(v)\n  assert.truthy(v)\nend\nreturn M")
    report = bench.run(GOOD % 'require("helper").check(false)')
    assert report.errors[0].where == f"{bench.folder}/lua/helper.lua:3"


def test_the_plugin_is_required_by_the_name_of_its_folder(bench: Bench) -> None:
    bench.write("init.lua", 'return { answer = require("config").answer }')
    bench.write("lua/config.lua", "return { answer = 42 }")
    bench.check_passes('assert.equal(42, require("demo").answer)')


def test_each_file_has_a_machine_of_its_own(bench: Bench) -> None:
    bench.run("left = 1 " + GOOD % "cru.fs.read = nil")
    bench.check_passes("assert.is_nil(left) assert.is_function(cru.fs.read)")


def test_stubs_can_be_put_into_the_namespace(bench: Bench) -> None:
    bench.check_passes(
        'cru.shell = { exec = function() return "stub" end } assert.equal("stub", cru.shell.exec())'
        " crucible.publish = function() return 1 end assert.equal(1, cru.publish())"
    )


def test_files_are_found_in_tests_and_in_the_folder(bench: Bench) -> None:
    for name in ("b_test.lua", "tests/z_test.lua", "tests/a_test.lua", "tests/helper.lua", "init.lua"):
        bench.write(name, "")
    found = [str(file.relative_to(bench.folder)) for file in files_of(bench.folder)]
    assert found == ["tests/a_test.lua", "tests/z_test.lua", "b_test.lua"]


NOTES = "{ notes = { { path = 'a.md', title = 'Alpha', content = 'one' }, { path = 'b.md', content = 'ONE two' } } }"


@pytest.mark.parametrize(
    "body",
    [
        # kiln and graph
        f"test_mocks.setup({{ kiln = {NOTES} }}) assert.equal(2, #cru.kiln.list()) assert.equal(1, #cru.kiln.list(1))",
        f"test_mocks.setup({{ kiln = {NOTES} }}) assert.equal('Alpha', cru.kiln.get('a.md').title)"
        " assert.is_nil(cru.kiln.get('c'))",
        f"test_mocks.setup({{ kiln = {NOTES} }}) assert.deep_equal({{ {{ path = 'a.md', score = 1.0 }} }}, cru.kiln.search('alpha'))"
        " assert.equal(1, #cru.kiln.search('one', { limit = 1 }))",
        f"test_mocks.setup({{ graph = {NOTES} }}) assert.equal(0.9, cru.graph.search_semantic('two')[1].score)",
        "test_mocks.setup({ graph = { outlinks = { a = { 'b' } } } }) assert.deep_equal({ 'b' }, cru.graph.get_outlinks('a'))"
        " assert.deep_equal({}, cru.graph.get_backlinks('a'))"
        " assert.deep_equal({ { 'a' } }, test_mocks.get_calls('graph', 'outlinks'))",
        "test_mocks.setup({ kiln = { neighbors = { a = { 'b' } } } }) cru.kiln.neighbors('a')[1] = 'changed'"
        " assert.equal('b', cru.kiln.neighbors('a')[1])",
        # http
        "test_mocks.setup() local r = http.get('u') assert.equal(200, r.status) assert.equal('', r.body) assert.equal(true, r.ok)",
        "test_mocks.setup({ http = { responses = { u = { status = 404, body = 'no', ok = false } } } })"
        " assert.equal(false, cru.http.request({ url = 'u' }).ok) assert.equal(404, cru.http.post('u', {}).status)"
        " assert.is_nil(cru.http.patch)",
        # fs
        "test_mocks.setup({ fs = { files = { ['/d/a'] = 'x', ['/d/e/f'] = 'y' }, dirs = { ['/d/e'] = true } } })"
        " assert.deep_equal({ 'a', 'e' }, fs.list('/d')) assert.equal('x', fs.read('/d/a')) assert.equal(true, fs.exists('/d/e'))",
        "test_mocks.setup() assert.has_error(function() fs.read('/no') end, 'File not found: /no') fs.write('/no', 'z')"
        " assert.equal('z', fs.read('/no')) fs.mkdir('/k') assert.equal(true, fs.exists('/k'))",
        # paths
        "test_mocks.setup() assert.equal('/mock/kiln', paths.kiln()) assert.equal('/mock/state/p', cru.paths.state('p'))"
        " assert.has_error(paths.session, 'session path not configured')",
        "test_mocks.setup() assert.equal('a/b', paths.join('a', '', 'b/')) assert.equal('/c/d', paths.join('a', '/c//', 'd'))",
        # session and sessions
        "test_mocks.setup() assert.equal('act', cru.session.get_mode()) cru.session.set_max_tokens(5)"
        " assert.equal(5, cru.session.get_max_tokens())",
        "test_mocks.setup() assert.equal('mock-session-1', cru.sessions.create({}).id)"
        " assert.equal('mock-session-2', crucible.sessions.create({}).id) assert.equal('/mock/kiln', cru.sessions.get('x').kiln)",
        "test_mocks.setup({ sessions = { response_parts = { { text = 'a' }, { text = 'b' } } } }) local said = ''"
        " for part in cru.sessions.send_and_collect('s', 'hi') do said = said .. part.text end assert.equal('ab', said)",
        # the record, and starting afresh
        "test_mocks.setup() fs.write('a', 'b') assert.deep_equal({ { 'a', 'b' } }, test_mocks.get_calls('fs', 'write'))"
        " assert.deep_equal({}, test_mocks.get_calls('no', 'such')) test_mocks.reset()"
        " assert.deep_equal({}, test_mocks.get_calls('fs', 'write')) assert.equal(false, fs.exists('a'))",
        "test_mocks.setup({ nobody = { x = 1 } }) assert.is_table(cru.fs)",
    ],
)
def test_mocks_give_fixtures_and_remember_calls(bench: Bench, body: str) -> None:
    bench.check_passes(body)


# what stands in for something is what everybody uses --------------------------------------------------------------------------------

FAKE_SLEEP = "local slept = {} cru.timer.sleep = function(s) slept[#slept + 1] = s end "

USES = {
    "retry": (
        "local n = 0 local got = cru.retry(function() n = n + 1 if n < 3 then error('no') end return n end, "
        "{ base_delay = 20, jitter = false }) "
        "assert.equal(3, got) assert.deep_equal({ 20, 40 }, slept)"
    ),
    "service": (
        "local n = 0 local s = cru.service.define { name = 'x', restart = { base_delay = 100 }, "
        "start = function() n = n + 1 if n < 3 then error('no') end end } s.fn() "
        "while cru.service.status('x').running do cru.spawn(function() end) coroutine_pause() end "
        "assert.equal(3, n) assert.equal(2, #slept)"
    ),
    "schedule": (
        "local n, h = 0, nil h = cru.schedule(100, function() n = n + 1 if n == 3 then cru.schedule.cancel(h) end end) "
        "while n < 3 do coroutine_pause() end for i = 1, 3 do assert.truthy(slept[i] > 99 and slept[i] <= 100) end"
    ),
    "ratelimit": (
        "local b = cru.ratelimit.new { capacity = 1, interval = 100 } b:acquire() b:acquire() b:acquire() "
        "assert.equal(2, #slept) assert.truthy(slept[1] > 99 and slept[2] > 99)"
    ),
}


@pytest.mark.parametrize("name", USES)
def test_what_a_test_puts_in_the_place_of_sleep_is_what_others_wait_with(bench: Bench, name: str) -> None:
    pause = "local real = cru.timer.sleep function coroutine_pause() real(0.001) end "
    report = bench.run(GOOD % (pause + FAKE_SLEEP + USES[name]))
    assert (report.passed, report.errors, report.waits) == (1, (), ())


def test_a_line_that_waits_on_the_real_clock_is_named(bench: Bench) -> None:
    source = (
        'describe("s", function()\n'
        '  it("sleeps", function()\n    for _ = 1, 2 do cru.timer.sleep(0.05) end\n  end)\n'
        '  it("retries", function()\n    pcall(cru.retry, function() error("no") end, '
        "{ max_retries = 1, base_delay = 0.06, jitter = false })\n  end)\n"
        '  it("hardly", function() cru.timer.sleep(0.001) end)\n'
        "end)\n"
    )
    report = bench.run(source)
    file = bench.folder / "tests" / "demo_test.lua"
    assert report.passed == 3 and report.errors == ()
    assert [(w.where, round(w.seconds, 3)) for w in report.waits] == [(f"{file}:3", 0.1), (f"{file}:6", 0.06)]


MOCKED = """
local held = cru.fs
test_mocks.setup { fs = { files = { ["notes/a.md"] = "A", ["/abs/b.md"] = "B" } } }
for _, fs in ipairs { held, cru.fs, crucible.fs, _G.fs } do
  for _, path in ipairs { "notes/a.md", "./notes/a.md", "notes//a.md", "notes/x/../a.md" } do
    assert.equal("A", fs.read(path))
    assert.truthy(fs.exists(path) and fs.is_file(path) and not fs.is_dir(path))
  end
  assert.equal("B", fs.read("/abs//b.md"))
  assert.truthy(fs.is_dir("notes") and fs.is_dir("notes/") and fs.is_dir(".") and not fs.exists("abs"))
  assert.deep_equal({ "a.md" }, fs.list("./notes/"))
end
held.append("./notes/a.md", "+") held.append("new.md", "n")
assert.equal("A+", cru.fs.read("notes/a.md"))
held.copy("notes/a.md", "notes/c.md") held.rename("new.md", "./notes/d.md")
assert.deep_equal({ "a.md", "c.md", "d.md" }, held.list("notes"))
assert.truthy(not held.exists("new.md"))
held.remove("notes")
assert.truthy(not held.exists("notes/c.md"))
assert.has_error(function() held.read("notes/c.md") end, "File not found: notes/c.md")
assert.has_error(function() held.remove("notes") end, "File not found: notes")
assert.equal(0, #cru.fs.list("."))
"""


def test_mocked_files_hold_for_every_function_and_spelling_also_where_the_table_was_held_before(bench: Bench) -> None:
    bench.check_passes(MOCKED)
    assert not (bench.world.session.parts.place.root / "new.md").exists()


# what a test sees that calls `test_mocks.setup` nowhere, and one that does
DISKS = {
    "fs has no file of the disk": "assert.equal(false, cru.fs.exists('{real}')) assert.has_error(function() fs.read('{real}') end)",
    "fs writes nothing": "cru.fs.write('{new}', 'x') assert.equal('x', fs.read('{new}')) assert.is_nil((io.open('{new}')))",
    "http asks nobody": "assert.equal(200, cru.http.get('http://127.0.0.1:9/').status)",
    "paths are made up": "assert.equal('/mock/workspace', cru.paths.workspace())",
    "io reads the disk": "assert.equal('real', io.open('{real}'):read('a'))",
    "a module is found beside the plugin": "assert.is_string((package.searchpath('demo.tests.demo_test', package.path)))",
}


@pytest.mark.parametrize("setup", ["", "test_mocks.setup() ", "test_mocks.setup() test_mocks.reset() "])
@pytest.mark.parametrize("case", DISKS)
def test_stand_ins_are_there_from_the_start_and_io_is_real(bench: Bench, case: str, setup: str) -> None:
    bench.write("real.txt", "real")
    bench.check_passes(setup + DISKS[case].format(real=bench.folder / "real.txt", new=bench.folder / "new.txt"))


def test_a_suite_reads_its_fixtures_with_io_while_it_is_loaded(bench: Bench) -> None:
    """As the suites that come with Crucible do: a helper beside the tests finds its own folder on package.path."""
    bench.write(
        "tests/fixtures/init.lua",
        "local at = package.searchpath('demo.tests.fixtures', package.path):gsub('init%.lua$', '')\n"
        "return assert(io.open(at .. 'page.html')):read('a')",
    )
    bench.write("tests/fixtures/page.html", "<p>")
    bench.check_passes("assert.equal('<p>', require('demo.tests.fixtures'))")
