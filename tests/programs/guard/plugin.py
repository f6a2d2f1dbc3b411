"""Watches over what the agent may do, and over what its context holds. [plugins.guard] allowed = "make" is what runs unasked."""

from cru import config, context, defaults, get_session, modes, on, on_session_start, options, permissions, toast, tools

memory = {"strict": False, "tidy": False}


async def survey(args):
    first, _ = await tools.call("read", {"file_path": "one.txt"})
    calls = [{"tool": "read", "args": {"file_path": "two.txt"}}, {"tool": "read", "args": {"file_path": "no"}}]
    rest, _ = await tools.batch(calls)
    known = {tool["name"] for tool in tools.list()[0]}
    usage, _ = await context.usage(None)
    messages, _ = context.messages(None)
    active, _ = tools.get_active(None)
    return "\n".join(
        [
            f"{word(first)} {word(rest[0]['result'])} {'string' if rest[1]['err'] else 'nil'}",
            f"active {' '.join(active)}, of {'more' if 'write' in known else 'no more'}",
            f"room {str(usage['messages'] == len(messages)).lower()} {context.estimate_tokens(messages[0]['content'])}",
            f"budget {config.get('guard_budget')}",
            f"mode {get_session().mode}",
        ]
    )


def word(text):
    return "".join(c if c.isalpha() else " " for c in text).split()[0]


async def started(session):
    session.mode = "careful"
    defaults.temperature = defaults.temperature or 0.25
    await config.set({"guard_budget": 500})
    tools.set_active(None, ["bash", "survey", "read"])
    context.attach(None, f"The guard is on: {modes.careful['description']}.", {"key": "guard"})


def judge(request):
    command = request["args"]["command"]
    if command.startswith(config["guard"]["allowed"]):
        return {"allow": True}
    if memory["strict"]:
        return {"deny": True, "reason": f"the guard does not know `{command}`"}
    return None


async def idle(ctx, event):
    if memory["tidy"]:
        removed, _ = context.remove(None, {"type": "first", "n": 1})
        done, _ = await context.compact(None)
        toast(f"removed {removed}, compacted {'true' if done else 'nil'}")


async def setup(cru):
    def strict(info, value):
        memory["strict"] = value

    toggle = {"type": "toggle", "name": "Refuse what is not known", "get": lambda info: memory["strict"], "set": strict}
    await options({"type": "group", "args": {"strict": toggle}})
    rules = {"default": "ask", "allow": ["survey"], "deny": ["bash:rm*"]}
    modes.careful = {"description": "nothing is thrown away", "permissions": rules}
    on_session_start(started)
    permissions.on_request(judge, {"pattern": "bash"})
    on("message:received", lambda ctx, event: memory.update(tidy="tidy" in event["content"]))
    on("session:idle", idle)


TOOLS = {"survey": {"desc": "What is there: tools, files, room.", "fn": survey}}
