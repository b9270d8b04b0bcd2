"""SHA-256 and RIPEMD-160, compiled: Bitcoin's hashes of millions of short byte strings.

`hashlib` takes a microsecond a call before it hashes anything, and RIPEMD-160 is missing where OpenSSL was built
without it. All functions read `data`, a contiguous uint8 array, and write to `out` from `place` on. `Desk` is the
memory that they work in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

_LEAN: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
outer: Any = njit(**_LEAN)
_BARE: dict[str, Any] = {**_LEAN, "no_cpython_wrapper": True}
inner: Any = njit(**_BARE)
"""Inner functions are called by compiled code only: without a bridge to Python they compile in half the time."""

Bytes = npt.NDArray[np.uint8]

ZERO, DIGEST = np.int64(0), np.int64(32)
"""Not written as plain numbers, for each of which numba would compile a function anew."""


def _root(value: int, root: int, bits: int) -> int:
    """floor(2^bits · value^(1/root)), exact."""
    low, high = 0, value << bits
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**root <= value << (bits * root) else (low, middle - 1)
    return low


def _words(values: list[int]) -> npt.NDArray[np.uint32]:
    return np.array([value & 0xFFFFFFFF for value in values], dtype=np.uint32)


_PRIMES = [n for n in range(2, 312) if all(n % d for d in range(2, n))]  # 64 of them
_ROUND = _words([_root(prime, 3, 32) for prime in _PRIMES])
_START = _words([_root(prime, 2, 32) for prime in _PRIMES[:8]])

# RIPEMD-160 runs two lines of 80 steps: which word a step takes, how far it turns, what it adds.
_RHO = np.array([7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8])
_SHIFT = np.array(  # round, word -> turn
    [
        [11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8],
        [12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7],
        [13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9],
        [14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6],
        [15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5],
    ]
)
_ORDERS = [[np.arange(16)], [(9 * np.arange(16) + 5) % 16]]
for _line in _ORDERS:
    for _ in range(4):
        _line.append(_RHO[_line[-1]])
_TAKES = np.array(_ORDERS, dtype=np.int64).reshape(2, 80)
_TURNS = np.array([_SHIFT[step // 16, _TAKES[line, step]] for line in (0, 1) for step in range(80)])
_TURNS = _TURNS.astype(np.uint32).reshape(2, 80)
_ADDS = np.stack(
    [
        _words([0, *(_root(prime, 2, 30) for prime in (2, 3, 5, 7))]),
        _words([*(_root(prime, 3, 30) for prime in (2, 3, 5, 7)), 0]),
    ]
)
_RIPEMD_START = _words([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0])


class Desk(NamedTuple):
    """What a hash works on: chaining value, message words, the padded end of the message, one digest."""

    state: npt.NDArray[np.uint32]  # (8,)
    words: npt.NDArray[np.uint32]  # (64,)
    tail: Bytes  # (128,)
    digest: Bytes  # (32,)


@inner
def desk() -> Any:
    return Desk(
        np.zeros(8, dtype=np.uint32),
        np.zeros(64, dtype=np.uint32),
        np.zeros(128, dtype=np.uint8),
        np.zeros(32, dtype=np.uint8),
    )


@inner
def copy(data: Any, start: Any, length: Any, out: Any, place: Any) -> None:
    """Bytes to another place. (An assignment of slices takes seconds to compile.)"""
    for i in range(length):
        out[place + i] = data[start + i]


@inner
def _right(x: Any, n: Any) -> Any:
    return np.uint32((x >> np.uint32(n)) | np.uint32(x << np.uint32(32 - n)))


@inner
def _sha_block(data: Any, at: Any, state: Any, w: Any) -> None:
    for i in range(16):
        p = at + 4 * i
        w[i] = np.uint32(
            (np.uint32(data[p]) << np.uint32(24))
            | (np.uint32(data[p + 1]) << np.uint32(16))
            | (np.uint32(data[p + 2]) << np.uint32(8))
            | np.uint32(data[p + 3])
        )
    for i in range(16, 64):
        x, y = w[i - 15], w[i - 2]
        s0 = _right(x, 7) ^ _right(x, 18) ^ np.uint32(x >> np.uint32(3))
        s1 = _right(y, 17) ^ _right(y, 19) ^ np.uint32(y >> np.uint32(10))
        w[i] = np.uint32(w[i - 16] + s0 + w[i - 7] + s1)
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    for i in range(64):
        s1 = _right(e, 6) ^ _right(e, 11) ^ _right(e, 25)
        one = np.uint32(h + s1 + np.uint32((e & f) ^ (~e & g)) + _ROUND[i] + w[i])
        s0 = _right(a, 2) ^ _right(a, 13) ^ _right(a, 22)
        two = np.uint32(s0 + np.uint32((a & b) ^ (a & c) ^ (b & c)))
        h, g, f, e = g, f, e, np.uint32(d + one)
        d, c, b, a = c, b, a, np.uint32(one + two)
    state[0] = np.uint32(state[0] + a)
    state[1] = np.uint32(state[1] + b)
    state[2] = np.uint32(state[2] + c)
    state[3] = np.uint32(state[3] + d)
    state[4] = np.uint32(state[4] + e)
    state[5] = np.uint32(state[5] + f)
    state[6] = np.uint32(state[6] + g)
    state[7] = np.uint32(state[7] + h)


@inner
def _pad(data: Any, at: Any, left: Any, length: Any, tail: Any, big: Any) -> Any:
    """The last `left` bytes with their padding and the length in bits; the number of bytes, 64 or 128."""
    size = 64 if left < 56 else 128
    for i in range(size):
        tail[i] = data[at + i] if i < left else 0
    tail[left] = 0x80
    bits = np.uint64(length) << np.uint64(3)
    for i in range(8):
        place = size - 1 - i if big else size - 8 + i
        tail[place] = np.uint8((bits >> np.uint64(8 * i)) & np.uint64(255))
    return size


@inner
def sha256(data: Any, start: Any, length: Any, out: Any, place: Any, on: Any) -> None:
    """SHA-256 of `length` bytes from `start` on."""
    state = on.state
    for i in range(8):
        state[i] = _START[i]
    whole = length // 64
    for i in range(whole):
        _sha_block(data, start + 64 * i, state, on.words)
    size = _pad(data, start + 64 * whole, length - 64 * whole, length, on.tail, True)
    for at in range(0, size, 64):
        _sha_block(on.tail, at, state, on.words)
    for i in range(8):
        for j in range(4):
            out[place + 4 * i + j] = np.uint8((state[i] >> np.uint32(24 - 8 * j)) & np.uint32(255))


@inner
def sha256d(data: Any, start: Any, length: Any, out: Any, place: Any, on: Any) -> None:
    """SHA-256 of the SHA-256: block hashes, transaction ids, Merkle trees, checksums."""
    sha256(data, start, length, on.digest, ZERO, on)
    sha256(on.digest, ZERO, DIGEST, out, place, on)


@inner
def _mixed(round_: Any, x: Any, y: Any, z: Any) -> Any:
    if round_ == 0:
        return np.uint32(x ^ y ^ z)
    if round_ == 1:
        return np.uint32((x & y) | (~x & z))
    if round_ == 2:
        return np.uint32((x | ~y) ^ z)
    if round_ == 3:
        return np.uint32((x & z) | (y & ~z))
    return np.uint32(x ^ (y | ~z))


@inner
def _ripemd_line(w: Any, state: Any, line: Any) -> Any:
    a, b, c, d, e = state[0], state[1], state[2], state[3], state[4]
    for step in range(80):
        round_ = step // 16
        mixed = _mixed(4 - round_ if line else round_, b, c, d)
        total = np.uint32(a + mixed + w[_TAKES[line, step]] + _ADDS[line, round_])
        turned = np.uint32(_right(total, np.uint32(32) - _TURNS[line, step]) + e)
        a, e, d, c, b = e, d, _right(c, 22), b, turned
    return a, b, c, d, e


@inner
def ripemd160(data: Any, start: Any, length: Any, out: Any, place: Any, on: Any) -> None:
    """RIPEMD-160 of `length` bytes from `start` on."""
    state = on.state
    for i in range(5):
        state[i] = _RIPEMD_START[i]
    whole = length // 64
    size = _pad(data, start + 64 * whole, length - 64 * whole, length, on.tail, False)
    for at in range(0, 64 * whole + size, 64):
        for i in range(16):
            on.words[i] = 0
            for j in range(4):
                byte = data[start + at + 4 * i + j] if at < 64 * whole else on.tail[at - 64 * whole + 4 * i + j]
                on.words[i] |= np.uint32(np.uint32(byte) << np.uint32(8 * j))
        a, b, c, d, e = _ripemd_line(on.words, state, 0)
        a2, b2, c2, d2, e2 = _ripemd_line(on.words, state, 1)
        first = np.uint32(state[1] + c + d2)
        state[1] = np.uint32(state[2] + d + e2)
        state[2] = np.uint32(state[3] + e + a2)
        state[3] = np.uint32(state[4] + a + b2)
        state[4] = np.uint32(state[0] + b + c2)
        state[0] = first
    for i in range(5):
        for j in range(4):
            out[place + 4 * i + j] = np.uint8((state[i] >> np.uint32(8 * j)) & np.uint32(255))


@inner
def hash160(data: Any, start: Any, length: Any, out: Any, place: Any, on: Any) -> None:
    """RIPEMD-160 of the SHA-256: what an address of a key or of a script stands for."""
    sha256(data, start, length, on.digest, ZERO, on)
    ripemd160(on.digest, ZERO, DIGEST, out, place, on)


SHA256, SHA256D, RIPEMD160, HASH160 = range(4)


@outer
def digests(data: Bytes, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64], kind: int) -> Bytes:
    """Hashes of n pieces of `data`, shape (n, 32); those of 20 bytes end in zeros."""
    found = np.zeros((len(start), 32), dtype=np.uint8)
    on = desk()
    for row in range(len(start)):
        if kind == SHA256:
            sha256(data, start[row], length[row], found[row], ZERO, on)
        elif kind == SHA256D:
            sha256d(data, start[row], length[row], found[row], ZERO, on)
        elif kind == RIPEMD160:
            ripemd160(data, start[row], length[row], found[row], ZERO, on)
        else:
            hash160(data, start[row], length[row], found[row], ZERO, on)
    return found
