"""A view of the work, made of nodes and handed on as data: another program may draw it."""

from cru import json, oil


def row(props):
    return oil.row(oil.text(props["label"], {"bold": True}), oil.spacer(), oil.progress(props["part"], props["width"]))


async def header(state):
    cases = {"busy": lambda: oil.spinner("busy"), "_": oil.badge("idle", {"fg": "green"})}
    return oil.col(
        {"gap": 1},
        await oil.match_state(state, cases),
        oil.when(state == "busy", oil.divider("=", 20)),
        oil.either(state == "busy", oil.hr(), None),
        oil.if_else(state == "idle", "nothing to do", "at work"),
    )


async def listed(todos):
    return oil.fragment(
        oil.bullet_list(todos),
        oil.numbered_list(todos),
        await oil.each(todos, lambda todo, i: oil.kv(i, todo)),
        await oil.maybe(todos[9] if len(todos) > 9 else None, lambda todo: oil.text(todo)),
    )


async def draw(args):
    meter = oil.component(row, {"label": "work", "width": 10})
    view = oil.col(
        await header(args["state"]),
        await meter({"part": 0.5}),
        await listed(args["todos"]),
        oil.markup("<p>ask <b>why</b></p>"),
        oil.input({"placeholder": "what next?"}),
        oil.popup(["go", {"label": "stop"}], 1),
        oil.scrollback("log", "the end"),
    ).with_border("rounded")
    return json.encode(view.as_data())


TOOLS = {
    "draw": {
        "desc": "A picture of the work as JSON.",
        "params": [
            {"name": "state", "type": "string", "desc": "busy or idle"},
            {"name": "todos", "type": "array", "desc": "What is to be done"},
        ],
        "fn": draw,
    }
}
