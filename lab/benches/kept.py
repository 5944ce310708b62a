"""Parts of the documents that were not measured anew: those of another device, or sections besides `--only`.

The documents are read back, because each device is measured on its own machine.
"""


def parts(text, mark):
    """The text before the first heading that begins with `mark`, and the texts by heading, without it."""
    head, found, title = [], {}, None
    for line in text.splitlines():
        if line.startswith(mark):
            title = line.removeprefix(mark)
            found[title] = []
        else:
            (head if title is None else found[title]).append(line)
    return head, found


def stamped(body, when):
    """A section's lines, with the line that says when it was measured."""
    body = list(body)
    while body and not body[-1]:
        body.pop()
    return [*body, "", f"Measured {when}.", ""]


def joined(head, sections):
    """The lines of a device's block."""
    lines = list(head)
    for title, body in sections.items():
        lines += [f"### {title}", *body]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def merge_sections(before, after, when):
    """The lines of a device's block, with the sections of `after` in those of `before`; `when` they were measured."""
    head, kept = parts("\n".join(before), "### ")
    _, measured = parts("\n".join(after), "### ")
    kept.update({title: stamped(body, when) for title, body in measured.items()})
    return joined(head, kept)


def incomplete(before, sections):
    """The titles of the sections in which a contestant has figures in `before`, but could take part in no row now:
    for instance two GPUs."""
    _, old = parts("\n".join(before), "### ")
    titles = set()
    for section in sections:
        columns = next((line for line in old.get(section["title"], []) if line.startswith("| ")), "")
        rows = [row["cells"] for row in section["rows"]]
        for label in section["contestants"]:
            if f"| {label} |" in columns and all("skip" in row.get(label, {"skip": ""}) for row in rows):
                titles.add(section["title"])
    return titles


def keep_whole(before, after, titles, when):
    """The lines `after` of a device's block, with the sections `titles` of `before`; `when` it was measured."""
    _, old = parts("\n".join(before), "### ")
    head, new = parts("\n".join(after), "### ")
    for title in titles:
        body = old[title]
        has_stamp = any(line.startswith("Measured 20") for line in body)
        new[title] = body if has_stamp else stamped(body, when)
    return joined(head, new)


def cells(lines):
    """The cells of all tables: index of the line, index of the column, and a key that names section, row and column."""
    section, header = "", None
    for number, line in enumerate(lines):
        if line.startswith("#"):
            section = line
        if not line.startswith("|"):
            header = None
            continue
        words = [word.strip() for word in line.strip().strip("|").split("|")]
        if header is None:
            header = words
        elif set(line) - set("|- "):
            for column, word in enumerate(words[1:], 1):
                yield number, column, (section, words[0], header[column]), word


def fill(lines, before, device):
    """Puts the cells of `before` where `lines` has no figure of the device, in its columns and its row."""
    known = {key: word for _, _, key, word in cells(before.splitlines())}
    out = list(lines)
    for number, column, key, word in cells(lines):
        _, row, header = key
        if word == "-" and key in known and (device in header or device == row):
            words = out[number].strip().strip("|").split("|")
            words[column] = f" {known[key]} "
            out[number] = "|" + "|".join(words) + "|"
    return out
