"""The line format."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.errors import LogTooNew
from jupyter_durable.log.line import ENVELOPE, ROOT, Chain, decode_event, encode_line, mac_text, read_header
from jupyter_durable.values.trust import line_mac
from tests.log.making import started

SECRET = bytes(range(32))


def test_a_line_is_json_with_checksum_mac_and_seq_in_front() -> None:
    line, chain = encode_line(started(), 7, ROOT, SECRET)

    assert list(json.loads(line))[:4] == ["c", "m", "seq", "type"]
    assert line.endswith(b"}\n")
    assert line[:ENVELOPE] == b'{"c":"%08x","m":"%b",' % chain
    assert chain.crc == crc32(line[ENVELOPE:-1])


def test_each_line_depends_on_the_one_before() -> None:
    _, first = encode_line(started(), 0, ROOT, SECRET)

    after, _ = encode_line(started(), 1, first, SECRET)
    alone, _ = encode_line(started(), 1, ROOT, SECRET)

    assert after[:14] != alone[:14]
    assert after[20:37] != alone[20:37]


def test_a_flush_mark_stands_behind_the_seq() -> None:
    line, _ = encode_line(started(), 7, ROOT, SECRET, 5)

    assert b'"seq":7,"f":5,"type"' in line
    assert decode_event(line) == started()


@given(st.binary(min_size=16, max_size=16), st.binary())
def test_the_mac_is_the_line_mac_of_the_users_key(previous: bytes, rest: bytes) -> None:
    import base64

    assert mac_text(SECRET, previous, rest) == base64.urlsafe_b64encode(line_mac(SECRET, previous, rest))


@given(st.integers(0, 2**32 - 1), st.from_regex(r"[A-Za-z0-9_-]{16}", fullmatch=True))
def test_a_chain_survives_its_text(crc: int, mac: str) -> None:
    chain = Chain(crc, mac.encode())

    assert Chain.of(chain.text) == chain


def test_a_newer_format_is_said_before_anything_else_is_read() -> None:
    line = b'{"c":"x","type":"not_even_known","data":{"format":2,"run":17}}'

    with pytest.raises(LogTooNew, match=r"a\.jsonl has format 2.*Upgrade it"):
        read_header(line, "a.jsonl")


def test_what_is_no_header_is_none() -> None:
    for line in (b"", b"{", b"\xff", b"\0\0", b'{"data":{"format":1}}', encode_line(started(), 0, ROOT, SECRET)[0]):
        assert read_header(line, "a.jsonl") is None
