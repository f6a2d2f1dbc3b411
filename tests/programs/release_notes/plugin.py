"""Release notes from the commits since the last tag, put on top of CHANGELOG.md."""

import re

from cru import fs, shell

HEADINGS = {"feat": "New", "fix": "Mended"}


async def release_notes(args):
    if not shell.which("git"):
        raise RuntimeError("git is missing")
    tag = await shell("git", ["describe", "--tags", "--abbrev=0"])
    since = tag["stdout"].strip() + "..HEAD" if tag["success"] else "HEAD"
    kinds, lines = {}, []

    def line(_, text):
        if match := re.match(r"(\w+): (.+)", text):
            kinds.setdefault(match[1], []).append(match[2])
            lines.append(text)

    await shell.spawn("git", ["log", "--reverse", "--format=%s", since], {"on_line": line})
    write_draft(args["version"], kinds)
    put_on_top()
    await shell.exec("git", ["add", "CHANGELOG.md"])
    return f"{len(lines)} commits since {since}; files: {' '.join(fs.list('.'))}"


def write_draft(version, kinds):
    fs.mkdir("draft")
    fs.write("draft/notes.md", f"# {version}\n")
    for kind, heading in HEADINGS.items():
        if kind in kinds:
            fs.append("draft/notes.md", f"\n## {heading}\n")
            for text in kinds[kind]:
                fs.append("draft/notes.md", f"- {text}\n")


def put_on_top():
    if fs.is_dir("CHANGELOG.md"):
        raise RuntimeError("CHANGELOG.md is a folder")
    if fs.is_file("CHANGELOG.md"):
        fs.copy("CHANGELOG.md", "CHANGELOG.md.old")
        fs.append("draft/notes.md", "\n" + fs.read("CHANGELOG.md"))
    fs.rename("draft/notes.md", "CHANGELOG.md")
    if fs.exists("draft"):
        fs.remove("draft")


TOOLS = {
    "release_notes": {
        "desc": "Write the release notes of the commits since the last tag on top of CHANGELOG.md.",
        "params": [{"name": "version", "type": "string", "desc": "The version that is released"}],
        "fn": release_notes,
    }
}
