"""Asks the person before work begins; where nobody is, everything has a sensible answer, or the model answers."""

from cru import ask, popup, show_panel, ui

PLACES = ["here", "in a branch", "nowhere"]


async def where_to():
    question = ask.question("Place", "Where shall I work?").choices(PLACES)
    response = await ask.ask_user(ask.batch().question(question))
    answer = ask.answer([1]) if response.is_cancelled() else response.answer(1)
    return answer.other() if answer.has_other() else question.get_choices()[answer.first_selected()]


async def reviewer():
    panel = ui.select("Reviewer", ["Ada", "Mary"])
    chosen = await show_panel(panel)
    if chosen["cancelled"]:
        chosen = ui.result_selected([0])
    return chosen.get("other") or panel["items"][chosen["selected"][0]]["label"]


async def template():
    entries = [popup.entry("short", "one line"), popup.entry_with_data("long", "a page", {"lines": 40})]
    found = await popup.show(popup.request("Template", entries))
    if "selected_entry" not in found:
        found = popup.response_selected(1, entries[1])
    entry = found["selected_entry"]
    return f"{entry['label']}/{entry.get('data', {'lines': 1})['lines']}"


async def interview(args):
    return ", ".join([await where_to(), await reviewer(), await template()])


async def all_dialogs(args):
    hints = ui.hints().filterable().initial_selection([1])
    items = [ui.item("left"), ui.item_with_data("right", "the other way", 7)]
    shown = {
        "sure": ui.panel(None, ui.confirm("Sure?")),
        "way": show_panel(ui.panel("Way", items, hints)),
        "same": show_panel(ui.panel_with_hints("Way", [ui.panel_item("left")], ui.panel_hints())),
        "ways": show_panel(ui.multi_select("Ways", ["left", "right"])),
        "note": show_panel(ui.search("Note", ["sea"])),
        "ask": ui.ask(None, {"question": "Sure?", "choices": ["yes"]}),
        "batch": ui.ask_batch(None, {"questions": [{"question": "Sure?"}]}),
        "edit": ui.edit(None, {"content": "draft"}),
        "show": ui.show(None, {"content": "the end"}),
        "popup": ui.popup(None, {"title": "What?", "entries": ["a"]}),
        "leave": ui.permission(None, {"action": {"type": "bash", "tokens": ["make"]}}),
    }
    said = [f"{name} {(await waiting)['kind']}" for name, waiting in shown.items()]
    free = await popup.show(popup.request_with_other("Which?", ["a"]))
    said.append(f"free {'true' if free == popup.response_none() else 'false'}")
    said.append(f"other {popup.response_other('neither')['other']} {ui.result_other('none')['other']}")
    said.append(f"none {'true' if ui.result_cancelled()['cancelled'] else 'false'}")
    said.append(f"words {ask.answer_other('as you like').other()}")
    said.append(f"told {ask.notify('that is all')['message']}")
    return "\n".join(said)


async def second_opinion(args):
    question = ask.question("Opinion", args["question"]).choices(["yes", "no"])
    response = await ask.agent(ask.batch().question(question))
    return question.get_choices()[response.answer(1).first_selected()]


TOOLS = {
    "interview": {"desc": "Ask what must be known before the work begins.", "fn": interview},
    "all_dialogs": {"desc": "Every other kind of dialog, one after another; says what each gave.", "fn": all_dialogs},
    "second_opinion": {
        "desc": "Let the model answer, beside the conversation.",
        "params": [{"name": "question", "type": "string", "desc": "What is to be decided"}],
        "fn": second_opinion,
    },
}
