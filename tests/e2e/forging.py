"""Tokens made by somebody else than the cluster: the seal is right, and what is sealed was never so.

Without a secret the seal of a token has no key, so whoever knows the format makes one.
"""

import base64
import struct

OPERATIONS, TIMES = 1, 2
# The causes stand behind version, keyspace, cluster, time and their own length; the seal ends a token.
TIME, CAUSES, SEAL_BYTES = 10, 22, 16
# Logical time counts milliseconds in its upper 48 bits.
MS = 1 << 16


def forged(token, datacenter, ahead):
    """The token, with what it names last of this datacenter `ahead` positions, or so many milliseconds, later."""
    content = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-SEAL_BYTES])
    if content[CAUSES] == OPERATIONS:
        # Each: extent, datacenter, incarnation, partition, position.
        places = range(CAUSES + 1, len(content), 14)
        place = [place for place in places if content[place + 1] == datacenter][-1] + 6
        raise_number(content, place, ahead)
    else:
        assert content[CAUSES] == TIMES
        raise_number(content, CAUSES + 3 + 8 * datacenter, ahead * MS)
        raise_number(content, TIME, ahead * MS)
    return sealed(content)


def operations(token):
    """The incarnation and position of each operation that a token names."""
    content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-SEAL_BYTES]
    assert content[CAUSES] == OPERATIONS
    return [struct.unpack_from("<H2xQ", content, place + 2) for place in range(CAUSES + 1, len(content), 14)]


def raise_number(content, place, by):
    struct.pack_into("<Q", content, place, struct.unpack_from("<Q", content, place)[0] + by)


def sealed(content):
    token = bytes(content) + keyed_blake3(bytes(32), bytes(content))[:SEAL_BYTES]
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


# BLAKE3 of one chunk, as its paper defines it.
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, ROOT, KEYED = 1, 2, 8, 16


def keyed_blake3(key, content):
    """The first 32 bytes."""
    assert 0 < len(content) <= 1024
    chain = struct.unpack("<8I", key)
    blocks = [content[at : at + 64] for at in range(0, len(content), 64)]
    for number, block in enumerate(blocks):
        flags = KEYED | (CHUNK_START if number == 0 else 0)
        flags |= CHUNK_END | ROOT if number == len(blocks) - 1 else 0
        chain = compressed(chain, block.ljust(64, b"\0"), len(block), flags)
    return struct.pack("<8I", *chain)


def compressed(chain, block, length, flags):
    words = struct.unpack("<16I", block)
    state = [*chain, *IV[:4], 0, 0, length, flags]
    for _ in range(7):
        for number, lane in enumerate(COLUMNS + DIAGONALS):
            mix(state, lane, words[2 * number], words[2 * number + 1])
        words = [words[place] for place in ORDER]
    return [low ^ high for low, high in zip(state[:8], state[8:])]


def mix(state, lane, one, other):
    a, b, c, d = lane
    for word, first, second in ((one, 16, 12), (other, 8, 7)):
        state[a] = (state[a] + state[b] + word) & 0xFFFFFFFF
        state[d] = rotated(state[d] ^ state[a], first)
        state[c] = (state[c] + state[d]) & 0xFFFFFFFF
        state[b] = rotated(state[b] ^ state[c], second)


def rotated(word, by):
    return (word >> by | word << (32 - by)) & 0xFFFFFFFF
