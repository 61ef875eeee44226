"""Damages inputs: bytes, texts token by token, and what is inside of gzip."""

import gzip
import re

# What numbers in a text become: edges of types and ranges, and what is no number.
NUMBERS = """0 1 -1 2 3 7 255 256 65535 65536 2147483647 2147483648 4294967295 4294967296 9223372036854775807
9223372036854775808 18446744073709551616 -2147483649 1e308 1e39 1e-320 0.5 -0.0 0x7FF0000000000000 0x7FF8000000000000 inf nan
99999999999999999999999999999999999999""".split()
PIECES = [b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\n", b'"', b"\\", b"{", b"}", b"[" * 40,
          b"(" * 300, b"%", b"#", b"!", b"@", b"?", b"\xc3\x28", b"\xf0\x9f\x98\x80", b"\x7fELF", b"\x1f\x8b"]
TOKENS = re.compile(rb"[A-Za-z_][\w.]*|[-+]?\d[\w.+-]*|\"[^\"\n]*\"|[%#@!^][\w.]*|\s+|.", re.DOTALL)


def damage_bytes(data, random):
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        at = random.randrange(len(data) + 1)
        size = random.choice([1, 1, 2, 4, 8, 64, random.randrange(len(data) + 1)])
        kind = random.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = random.randrange(256)
        elif kind == 2:
            del data[at:at + size]
        elif kind == 3:
            data[at:at] = data[at:at + size]
        elif kind == 4:
            data[at:at] = random.choice(PIECES)
        elif kind == 5:
            piece = random.choice(PIECES)
            data[at:at + len(piece)] = piece
        else:
            del data[at:]
    return bytes(data)


def damage_text(data, random):
    """Tokens changed for others, moved, doubled and left out, now and then bytes."""
    tokens = TOKENS.findall(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 5])):
        if not tokens:
            break
        at = random.randrange(len(tokens))
        end = min(len(tokens), at + random.choice([1, 1, 1, 2, 5, 30]))
        kind = random.randrange(8)
        numbers = [i for i, token in enumerate(tokens) if token[-1:].isdigit() or token[:1] in b"-+0123456789"]
        if kind <= 2 and numbers:
            tokens[random.choice(numbers)] = random.choice(NUMBERS).encode()
        elif kind == 3:
            tokens[at] = random.choice(tokens)
        elif kind == 4:
            del tokens[at:end]
        elif kind == 5:
            to = random.randrange(len(tokens) + 1)
            tokens[to:to] = tokens[at:end]
        elif kind == 6:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = damage_bytes(tokens[at], random)
    text = b"".join(tokens)
    if random.random() < 0.1:
        text = text[:random.randrange(len(text) + 1)]
    return text


def damage_gzip(data, random):
    """The file, or what is in it."""
    if random.random() < 0.5:
        return damage_bytes(data, random)
    return gzip.compress(damage_bytes(gzip.decompress(data), random), 1, mtime=0)
