"""A desk over the vault: what is known of a note, in crucible's older names (vault, graph) and its newer ones (kiln)."""

from cru import graph, kiln, search, vault


def paths(notes):
    return ",".join(note["path"] for note in notes)


async def desk(args):
    path = args["path"]
    note = await vault.get(path)
    title = note["title"]
    lines = [
        f"{title} in {vault.active}={kiln.active}",
        f"all {paths(await vault.list())} first {paths(await kiln.list(1))}{paths(await graph.note_list(1))}",
        f"same {(await kiln.get(path))['path']} {(await graph.note_get(path))['path']} {(await graph.db_find(title))['path']}",
        f"out {','.join(await vault.outlinks(path))} {','.join(await kiln.outlinks(path))}",
        f"back {','.join(await vault.backlinks(path))} {','.join(await kiln.backlinks(path))}",
        f"near {','.join(await vault.neighbors(path, 2))} {','.join(await kiln.neighbors(path))}",
        f"fast {','.join(await graph.fast_outlinks(path))} {','.join(await graph.fast_backlinks(path))} "
        f"{','.join(await graph.fast_neighbors(path, 2))}",
        f"graph {paths(await graph.db_outlinks(title))} {paths(await graph.db_inlinks(title))} "
        f"{paths(await graph.db_neighbors(title))}",
        "query " + ",".join((await graph.db_query(f'find("{title}") | ->[] | map(.title)'))[0]),
        f"found {paths(await search('pause'))} {paths(await vault.search('pause', {'limit': 1}))} "
        + (await kiln.search("growing"))[0]["snippet"],
    ]
    about = {"path": f"desk/{title}", "body": "\n".join(lines) + "\n", "frontmatter": {"about": path}}
    await vault.create_note(about)
    return await kiln.create_note({"path": "desk/index", "body": f"[[{title}]]\n", "overwrite": True})


TOOLS = {
    "desk": {
        "desc": "Say everything about a note, and keep what was said.",
        "params": [{"name": "path", "type": "string", "desc": "The note"}],
        "fn": desk,
    }
}
