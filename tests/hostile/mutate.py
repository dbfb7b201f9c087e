"""Damaged copies of a file's bytes: as transfers, editors and enemies leave them."""
import gzip
import json
import re
import sqlite3

NUMBERS = ["0", "-1", "1e308", "-1e308", "1e-320", "1e999", "18446744073709551616", "9223372036854775807", "0.5",
           "null", "true", "\"\"", "[]", "{}", "\"nan\"", "\"\\u0000\"", "\"-5 GiB\"", "\"\\u001b[31m\""]
PIECES = [b"\x00", b"\xff", b"\xfc", b"\xef\xbb\xbf", b"\r", b"\x1b[31m", b"{", b"}", b"[" * 300, b"\"", b"NaN",
          b"9" * 400, b",", b"\n" * 50, b"A" * 5000, b"\xed\xa0\x80", b"%n%s", b"$(id)", b"../../etc/passwd"]


def _places(document, path=()):
    """Every place of a JSON document."""
    yield path
    if isinstance(document, dict):
        for key in document:
            yield from _places(document[key], path + (key,))
    elif isinstance(document, list):
        for index in range(min(len(document), 8)):
            yield from _places(document[index], path + (index,))


def _with(document, path, change):
    if not path:
        return change(document)
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _with(copy[path[0]], path[1:], change)
    return copy


def of_json(data, random):
    """One value of a JSON document replaced, doubled, renamed or taken away."""
    document = json.loads(data)
    path = random.choice([p for p in _places(document) if p] or [()])
    kind = random.randrange(5)
    mark = "@@@"
    if kind < 3:
        text = json.dumps(_with(document, path, lambda _: mark))
        return text.replace(json.dumps(mark), random.choice(NUMBERS), 1).encode()

    def shrink(parent):
        if isinstance(parent, list):
            return parent[:path[-1]] + parent[path[-1] + 1:]
        rest = {k: v for k, v in parent.items() if k != path[-1]}
        return rest if kind == 3 else {**rest, str(path[-1]) + "x": parent[path[-1]]}

    return json.dumps(_with(document, path[:-1], shrink) if path else document).encode()


def of_bytes(data, random):
    """Cut, lengthened, overwritten, repeated."""
    at = random.randrange(len(data) + 1)
    kind = random.randrange(7)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + random.choice(PIECES) + data[at:]
    if kind == 2:
        piece = random.choice(PIECES)
        return data[:at] + piece + data[at + len(piece):]
    if kind == 3:
        end = min(len(data), at + random.randrange(200))
        return data[:at] + data[at:end] * random.randrange(2, 5) + data[end:]
    if kind == 4:
        end = min(len(data), at + random.randrange(2000))
        return data[:at] + data[end:]
    if kind == 5 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1:]
    return data.replace(random.choice([b"1", b"0", b" ", b",", b":", b"\n"]), random.choice(PIECES[:12]), 3)


def of_text(data, random):
    """A table, a log or a script with one number, word or line that is another."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(random.randrange(len(lines)), lines[at])
    elif kind == 2:
        lines[at] = lines[at] + random.choice([b",", b"\t", b" ", b"\\", b"\"", b"'"]) + random.choice(PIECES)
    else:
        pattern = rb"[-+.0-9eE]+" if kind < 5 else rb"[^\s,]+"
        found = [m for m in re.finditer(pattern, lines[at]) if re.search(rb"[0-9]" if kind < 5 else rb".", m.group())]
        if found:
            one = random.choice(found)
            other = random.choice(NUMBERS).strip('"').encode() if kind < 5 else random.choice(found + [one]).group() * 2
            lines[at] = lines[at][:one.start()] + other + lines[at][one.end():]
    return b"\n".join(lines)


def of_safetensors(data, random):
    """One value of the header is another, and its length is right."""
    size = int.from_bytes(data[:8], "little")
    header = of_json(data[8:8 + size], random)
    return len(header).to_bytes(8, "little") + header + data[8 + size:]


def of_database(data, random):
    """A table that is gone, renamed, a view or empty, or values of a column that are others."""
    database = sqlite3.connect(":memory:")
    database.deserialize(data)
    tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = random.choice(tables)
    column = random.choice([row[1] for row in database.execute(f'PRAGMA table_info("{table}")')])
    value = random.choice(["0", "-1", "1e308", "-9223372036854775808", "9223372036854775807", "NULL", "'x'", "x'00ff'",
                           "zeroblob(10000)", "-0.5", "1e-320", "'../../etc/passwd'", "char(27)"])
    database.execute(random.choice([
        f'UPDATE "{table}" SET "{column}" = {value}',
        f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid % 3 = 1',
        f'DELETE FROM "{table}"',
        f'DROP TABLE "{table}"',
        f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}x"',
        f'ALTER TABLE "{table}" RENAME TO "{table}X"',
        f'CREATE VIEW v AS SELECT * FROM "{table}"',
        f'CREATE TRIGGER t AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END',
        f'INSERT INTO "{table}" SELECT * FROM "{table}"',
    ]))
    database.commit()
    return database.serialize()


def mutated(data, random):
    """One of many damages, as fits the content."""
    try:
        if data[:2] == b"\x1f\x8b" and random.random() < 0.7:
            return gzip.compress(mutated(gzip.decompress(data), random), 1)
        if data[:15] == b"SQLite format 3" and random.random() < 0.6:
            return of_database(data, random)
        if data[8:9] == b"{" and random.random() < 0.6:
            return of_safetensors(data, random)
        if data[:1] in (b"{", b"[") and random.random() < 0.6:
            return of_json(data, random)
    except (ValueError, IndexError, sqlite3.Error):
        pass
    if b"\0" not in data and random.random() < 0.5:
        for _ in range(random.choice([1, 1, 2])):
            data = of_text(data, random)
        return data
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        data = of_bytes(data, random)
    return data
