"""Good files made bad: bytes, JSON, CSV and safetensors headers, by a random number generator."""

import json
from random import Random
from typing import Any

#: What stands where something else is meant.
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, 10**12, 10**30, 0.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), "", "0", "nan", "a\nb", "\x1b[31m", "\u2028"),
    *("<script>", "=1+1", "\ud800", "x" * 5000, "../../etc", [], {}, [[]], [None], {"": None}),
    *([1, "a"], {"k": 1}, [0.5] * 50, "²", "\u0661", "1_000", "\0", "NA", 3_000_000),
)
#: Cells of tables.
CELLS = (
    *("", " ", "nan", "inf", "-inf", "1e999", "-1", "0", "1.5", "text", "²", "1_000", '"', "'"),
    *("a\nb", "a,b", "=1+1", "\x1b]0;x\x07", "x" * 3000, "\0", "\ufeff", "\u202e", "9" * 400),
    *("C" * 2000, "C1CC1C(", "[Xx]", "[H][H]", "*", "c1ccccc1" * 40, "[2000C]", "C%99CC%99", ">>"),
)


def damaged_bytes(content: bytes, random: Random) -> bytes:
    """Some bytes other, gone, twice or more."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 5, 30))):
        place = random.randrange(len(data) + 1)
        end = min(len(data), place + random.choice((1, 1, 2, 8, 100)))
        how = random.randrange(6)
        if how == 0 and place < len(data):
            data[place] ^= 1 << random.randrange(8)
        elif how == 1:
            data[place:end] = bytes(random.randrange(256) for _ in range(end - place))
        elif how == 2:
            del data[place:end]
        elif how == 3:
            data[place:place] = data[place:end]
        elif how == 4:
            data[place:end] = random.choice((b"\0", b"\xff", b"\n", b'"', b"9", b"-")) * 9
        else:
            del data[place:]
    return bytes(data)


def damaged_json(value: Any, random: Random) -> Any:
    """One entry, anywhere, other than it was, gone, or under another name."""
    if isinstance(value, dict) and value and random.random() < 0.95:
        key = random.choice(list(value))
        how = random.randrange(10)
        changed = dict(value)
        if how == 0:
            del changed[key]
        elif how == 1:
            changed[random.choice(("", "new", "0", "-1", f"{key} "))] = changed.pop(key)
        else:
            changed[key] = damaged_json(value[key], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        how = random.randrange(6)
        if how == 0:
            return value[:place] + value[place + 1 :]
        if how == 1:
            return value + value[place : place + 1] * random.choice((1, 3))
        return [*value[:place], damaged_json(value[place], random), *value[place + 1 :]]
    return random.choice(HOSTILE)


def damaged_json_text(text: bytes, random: Random) -> bytes:
    """JSON that is still JSON, or nearly."""
    if random.random() < 0.15:
        return damaged_bytes(text, random)
    return json.dumps(damaged_json(json.loads(text), random)).encode()


def damaged_table(text: bytes, random: Random, separator: bytes = b",") -> bytes:
    """Cells, rows or the head of a table other than they were."""
    if random.random() < 0.2:
        return damaged_bytes(text, random)
    rows = [line.split(separator) for line in text.split(b"\n")]
    for _ in range(random.choice((1, 1, 2, 4))):
        row = random.choice(rows)
        how = random.randrange(6)
        if how == 0:
            rows.remove(row)
            rows = rows or [[b""]]
        elif how == 1:
            rows.insert(random.randrange(len(rows)), list(row))
        elif how == 2:
            row.append(random.choice(CELLS).encode(errors="replace"))
        else:
            row[random.randrange(len(row))] = random.choice(CELLS).encode(errors="replace")
    return b"\n".join(separator.join(row) for row in rows)


def damaged_safetensors(content: bytes, random: Random) -> bytes:
    """A header that says something else, with or without its checksum; or other bytes."""
    if random.random() < 0.3:
        return damaged_bytes(content, random)
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.get("__metadata__", {})
    if random.random() < 0.8:
        metadata.pop("sha256", None)
    inner = [key for key in ("rest", "note") if key in metadata]
    if inner and random.random() < 0.7:
        changed = damaged_json(json.loads(metadata[inner[0]]), random)
        metadata[inner[0]] = json.dumps(changed)
    elif random.random() < 0.5:
        names = [key for key in header if key != "__metadata__"]
        name = random.choice(names)
        how = random.randrange(4)
        if how == 0:
            header["other"] = header.pop(name)
        elif how == 1:
            shape = header[name]["shape"]
            header[name]["shape"] = random.choice(([*shape, 1], shape[::-1], [0], [2**40], [1]))
        elif how == 2:
            dtypes = ("F32", "I32", "I64", "U8", "F64", "BOOL", "F16", "BF16", "X")
            header[name]["dtype"] = random.choice(dtypes)
        else:
            first, second = header[name], header[random.choice(names)]
            first["data_offsets"] = second["data_offsets"]
    else:
        changed = bytearray(data)
        for _ in range(random.choice((1, 3))):
            changed[random.randrange(len(changed))] = random.choice((0, 1, 127, 255))
        data = bytes(changed)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data
