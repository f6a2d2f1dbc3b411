"""A journal: what was asked, per context; people and what is known of them, over all contexts; a page a session in its folder."""

from cru import fs, on, paths, state, storage
from cru.core.api.host import NamespaceError


def notes():
    try:
        return paths.kiln(), ""
    except NamespaceError as error:
        return paths.state("journal"), f": {error}"


def asked(ctx, event):
    kept = [*(state.get("asked") or []), event["content"]]
    state.set("asked", kept)
    state.set("last", len(kept))


on("message:received", asked)


def remember(args):
    storage.set(args["who"], args["key"], args["value"])
    return f"{args['who']} {args['key']} is {storage.get(args['who'], args['key'])}"


def forget(args):
    return "forgotten" if storage.delete(args["who"], args["key"]) else "never known"


def who(args):
    found = storage.find(args["key"], args["value"])
    return ", ".join(f"{one} ({len(storage.list(one))} facts)" for one in found)


def close_page(args):
    folder, why = notes()
    page = paths.join(folder, "page.md")
    fs.write(page, f"asked {', '.join(state.get('asked'))}\nin {paths.workspace()}\n")
    fs.write(paths.join(paths.session(), "page.txt"), page)
    state.clear("asked")
    return f"page {state.get('last')} {'nil' if state.get('asked') is None else 'left'}{why}"


def tool(fn, desc, *names):
    return {"desc": desc, "params": [{"name": name, "type": "string"} for name in names], "fn": fn}


TOOLS = {
    "remember": tool(remember, "Remember something about somebody.", "who", "key", "value"),
    "forget": tool(forget, "Forget something about somebody.", "who", "key"),
    "who": tool(who, "Who is known to have this value?", "key", "value"),
    "close_page": tool(close_page, "Close the page of this session."),
}
