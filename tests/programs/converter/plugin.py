"""Looks into configuration files: what kind they are, one value of them, the same in another format, two of them as one."""

from cru import check, config, fmt, fs, inspect, json, json_decode, json_encode, oq, tbl_deep_extend, tbl_get

settings = check.settings(config.converter, {"least": 1024})


def translate(args):
    writers = {"json": oq.json, "pretty": oq.json_pretty, "yaml": oq.yaml, "toml": oq.toml, "toon": oq.toon}
    check.string(args["path"], "path")
    check.one_of(args["to"], list(writers), "to")
    text = fs.read(args["path"])
    value = check.table(oq.parse_as(text, oq.detect(text)), "the file's content")
    write = check.func(writers[args["to"]], "writer")
    return write(value)


def look(args):
    found = oq.query(oq.parse(fs.read(args["path"])), args["filter"])
    return oq.json({"found": oq.null}) if found is None else oq.format(found, {"tool": "look"})


def join(args):
    merged = tbl_deep_extend("force", oq.parse(fs.read(args["base"])), oq.parse(fs.read(args["over"])))
    port = check.number(tbl_get(merged, "server", "port"), "server.port", {"min": settings["least"]})
    check.boolean(tbl_get(merged, "server", "tls"), "server.tls", {"optional": True})
    return fmt("port {port}\n", {"port": port}) + oq.convert(merged, "toml") + inspect(merged["tags"])


def report(args):
    note = json.decode(args["note"])
    author = note["author"] or json.null
    return json.encode(json_decode(json_encode({"files": json.array([]), "author": author, "size": len(args["note"])})))


def tool(fn, desc, *names):
    return {"desc": desc, "params": [{"name": name, "type": "string"} for name in names], "fn": fn}


TOOLS = {
    "translate": tool(translate, "Write a configuration file in another format.", "path", "to"),
    "look": tool(look, "One value of a configuration file.", "path", "filter"),
    "join": tool(join, "Two configuration files as one, in TOML; the second wins.", "base", "over"),
    "report": tool(report, "A record of what was done, for another program.", "note"),
}
