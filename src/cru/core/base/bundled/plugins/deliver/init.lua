-- deliver: plan -> implement -> test -> review -> done. The tests must pass before the work may be called finished.
--
--   [plugins.deliver]
--   enabled = true
--   test = "make test"      # the command that must succeed
--   timeout = 600           # seconds it may take

--   protect = ["Makefile", "tests/**"]   # globs of the files that the tests consist of
local settings = cru.check.settings(cru.config.deliver, {
  test = "make test",
  timeout = 600,
  protect = { "Makefile", "**/Makefile", "tests/**", "test/**", "spec/**", "**/test_*", "**/*_test.*", "**/*.test.*", "**/*.spec.*" },
})

local LOOKING = { "read", "ls", "glob", "grep", "fetch", "update_todos", "update_goals" }

cru.fsm.define {
  name = "deliver",
  about = "carry a task through: plan, implement, test, review",
  initial = "plan",
  limits = { legs = 200 },
  protect = settings.protect,
  states = {
    plan = {
      instruction = "Find out what is asked and what is there: read the code that matters, and the tests around it. Change nothing yet. "
        .. "Write the steps as a todo list with update_todos, each small enough to check; say how each will be tested. "
        .. "If the task can be read in two ways that lead to different work, ask with call_user.",
      tools = LOOKING,
      to = { "implement" },
      exit = {
        about = "there must be a todo list",
        call = function(ctx)
          if #ctx.session.todos == 0 then
            return false, "there is no plan yet: write the steps as a todo list (`- [ ] step`) with update_todos"
          end
          return true
        end,
      },
      limits = { legs = 10 },
    },
    implement = {
      instruction = "Work through the todo list, one step at a time, and tick each step off. With every change of behaviour goes a test "
        .. "that fails without it. Change only what the task needs; keep the style of the code around it. "
        .. "If a step turns out wrong, go back and plan again instead of improvising.",
      to = { "test" },
      back = { "plan" },
      limits = { legs = 60 },
    },
    test = {
      instruction = "Run `" .. settings.test .. "` and read what it says. This state is left forward only while that command succeeds; "
        .. "it is run once more when you ask to go on. Never weaken, skip or delete a test to make it pass. "
        .. "If something fails, go back to implement and mend the cause.",
      tools = { "read", "ls", "glob", "grep", "bash", "update_todos" },
      to = { "review" },
      back = { "implement" },
      exit = { shell = settings.test, timeout = settings.timeout },
      limits = { legs = 20 },
    },
    review = {
      instruction = "Read the whole change as somebody who has never seen it: `git diff`, then each file that changed. Look for mistakes, "
        .. "cases that no test covers, leftovers, names and comments that no longer fit, and anything the task asked for that is "
        .. "missing. If you find something, go back to implement; what is found here is not mended here. "
        .. "Otherwise go on, with a note that sums up the change in one sentence and names each test file and Makefile that was changed, "
        .. "with the reason. The tests run once more before the work counts as done.",
      tools = { "read", "ls", "glob", "grep", "bash", "update_todos" },
      to = { "done" },
      back = { "implement" },
      exit = {
        about = "all todos must be done",
        call = function(ctx)
          local open = {}
          for _, todo in ipairs(ctx.session.todos) do
            if not todo.done then open[#open + 1] = todo.text end
          end
          if #open > 0 then return false, "todos are open: " .. table.concat(open, "; ") end
          return true
        end,
      },
      limits = { legs = 20 },
    },
    done = {
      final = true,
      recheck = { "test" },
      instruction = "Tell the user what was changed, how it was tested, and what is left to decide. Be brief.",
    },
  },
}
