"""Compiled hashes against published vectors and against OpenSSL."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from btcnb.data.readers.blocks.hashes import hash160, ripemd160, sha256, sha256d


def pieces(texts: list[bytes]):
    size = np.array([len(text) for text in texts], dtype=np.int64)
    return np.frombuffer(bytearray(b"".join(texts)), dtype=np.uint8), np.cumsum(size) - size, size


RIPEMD = {  # from the paper that defines the function
    b"": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
    b"a": "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe",
    b"abc": "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc",
    b"message digest": "5d0689ef49d2fae572b881b123a85ffa21595f36",
    b"abcdefghijklmnopqrstuvwxyz": "f71c27109c692c1b56bbdceb5b9d2865b3708dbc",
    b"1234567890" * 8: "9b752e45573d4b39f4dbd3323cab82bf63326bfb",
}
SHA = {  # FIPS 180
    b"": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
}


def test_published_vectors():
    assert [row.tobytes().hex() for row in ripemd160(*pieces(list(RIPEMD)))] == list(RIPEMD.values())
    assert [row.tobytes().hex() for row in sha256(*pieces(list(SHA)))] == list(SHA.values())


@given(st.lists(st.binary(max_size=300), max_size=40))
@example([b"x" * size for size in range(130)])
@example([b"y" * 64] * 17 + [b""])
def test_any_messages_of_any_lengths_side_by_side(texts):
    once = [hashlib.sha256(text).digest() for text in texts]
    assert [row.tobytes() for row in sha256(*pieces(texts))] == once
    assert [row.tobytes() for row in sha256d(*pieces(texts))] == [hashlib.sha256(one).digest() for one in once]


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_hash160_is_openssls_where_it_has_one(texts):
    if "ripemd160" not in hashlib.algorithms_available:
        pytest.skip("OpenSSL has no RIPEMD-160 here")
    known = [hashlib.new("ripemd160", hashlib.sha256(text).digest()).digest() for text in texts]
    assert [row.tobytes() for row in hash160(*pieces(texts))] == known
    assert [row.tobytes() for row in ripemd160(*pieces(texts))] == [
        hashlib.new("ripemd160", text).digest() for text in texts
    ]


def test_a_message_longer_than_what_is_sorted_by():
    texts = [b"z" * (64 * 65_600), b"short", b"z" * (64 * 65_540 + 3)]
    assert [row.tobytes() for row in sha256(*pieces(texts))] == [hashlib.sha256(text).digest() for text in texts]
