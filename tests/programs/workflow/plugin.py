"""A letter is written, read, and sent; never sent unread. The person's word "send" moves it, "stop" leaves it."""

from cru import fsm

memory = {"read": False}

fsm.define(
    {
        "name": "letter",
        "initial": "writing",
        "states": {
            "writing": {"to": ["reading"], "instruction": "Write the letter."},
            "reading": {"to": ["sent"], "exit": lambda ctx: (memory["read"], "nobody has read it")},
            "sent": {"final": True},
        },
    }
)


async def post(args):
    action = args["action"]
    if action == "begin":
        await fsm.start("letter", "to Ada")
    elif action == "hand_over":
        await fsm.to("letter", "reading", "written")
    elif action == "read":
        memory["read"] = True
    elif action == "stop":
        fsm.stop("letter", "it rains")
    else:
        moved, why = await fsm.to("letter", "sent")
        if not moved:
            return why
    one = fsm.list()[0]
    return f"{one['name']} {one['status']} {one['state']} {len(fsm.status('letter')['history'])}"


TOOLS = {
    "post": {
        "desc": "What the post office does.",
        "params": [{"name": "action", "type": "string", "desc": "begin, hand_over, read, send or stop"}],
        "fn": post,
    }
}
