"""A Bitcoin Core node behind JSON-RPC: polite, patient, and silent about its credentials."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from tqdm import tqdm

from btcnb.data.readers.atomic import replacing
from btcnb.errors import DataError

WARMING_UP = -28
"""Bitcoin Core's error code while it loads its index."""
HASHES_A_CALL = 500


@dataclass(frozen=True)
class Node:
    """How to reach a node. The credentials are left out of `repr`, of messages and of logs."""

    url: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    timeout: float = 120.0  # seconds to wait for an answer
    retries: int = 6  # further attempts after a failure that may pass
    backoff: float = 0.5  # seconds before the first of them; doubled each time
    connection: requests.Session = field(default_factory=requests.Session, repr=False, compare=False)  # kept alive

    @classmethod
    def at(
        cls, url: str, user: str | None = None, password: str | None = None, cookie: str | Path | None = None
    ) -> Node:
        """A node from a URL that may hold `user:password@`, from both given apart, or from the node's cookie file."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        clean = urlunsplit((parts.scheme, host, parts.path, "", ""))
        if cookie is not None:
            user, password = _cookie(Path(cookie).expanduser())
        return cls(clean, user or unquote(parts.username or ""), password or unquote(parts.password or ""))

    def call(self, method: str, *params: Any) -> tuple[Any, str]:
        """A result, with amounts as decimals, and the text it was read from."""
        return self._post({"jsonrpc": "1.0", "id": method, "method": method, "params": params}, method, _result)

    def block_hashes(self, heights: range) -> list[str]:
        """Block hashes of the given heights, in one request."""
        asked = [{"jsonrpc": "1.0", "id": h, "method": "getblockhash", "params": [h]} for h in heights]
        replies = {reply["id"]: reply for reply in self._post(asked, "getblockhash", json.loads)}
        for height in heights:
            self._raise_error(replies[height].get("error"), f"getblockhash {height}")
        return [replies[height]["result"] for height in heights]

    def _post(self, body: Any, method: str, parse: Callable[[str], Any]) -> Any:
        """The parsed reply; a failure that may pass (no answer, half an answer, still warming up) is tried again."""
        problem = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.backoff * 2 ** (attempt - 1))
            try:
                reply = self.connection.post(
                    self.url, json=body, auth=(self.user, self.password), timeout=self.timeout, allow_redirects=False
                )
            except requests.RequestException as error:
                problem = type(error).__name__  # its text may repeat the request
                continue
            if reply.status_code in (401, 403):
                raise self._refused(reply.status_code)
            if reply.status_code != 200:
                problem = f"status {reply.status_code}"
                failure = _failure(reply)
                if failure.get("code") != WARMING_UP:
                    self._raise_error(failure, method)
                continue
            try:
                return parse(reply.text)
            except ValueError:
                problem = "an answer cut short"
        raise DataError(
            self.url,
            method,
            f"no answer after {self.retries + 1} attempts ({problem})",
            "check that the node runs, then run again: blocks in the cache folder are not fetched twice",
        )

    def _refused(self, status: int) -> DataError:
        if status == 401:
            return DataError(self.url, "credentials", "the node refuses them", "check user, password or cookie file")
        return DataError(self.url, "credentials", "the node forbids this", "check rpcallowip and rpcwhitelist")

    def _raise_error(self, error: Any, method: str) -> None:
        if error:
            raise DataError(
                self.url, method, f"the node answers: {error.get('message', error)}", "check heights and pruning"
            )


def fetch_blocks(
    node: Node, start: int | None, end: int | None, cache: str | Path | None, progress: bool | None
) -> Iterator[tuple[str, Any]]:
    """(place for messages, block) for each height from `start` to `end`, from the cache where it has the same hash."""
    first = 0 if start is None else start
    last = int(node.call("getblockcount")[0]) if end is None else end
    if first < 0 or last < first:
        raise DataError(node.url, "start, end", f"{first} to {last} is no range of heights", "start at 0, end after it")
    folder = None if cache is None else Path(cache)
    hidden = None if progress is None else not progress
    with tqdm(total=last - first + 1, desc="blocks", unit="block", leave=False, disable=hidden) as bar:
        for low in range(first, last + 1, HASHES_A_CALL):
            heights = range(low, min(low + HASHES_A_CALL, last + 1))
            for height, block_hash in zip(heights, node.block_hashes(heights), strict=True):
                yield f"{node.url}, block {height}", _block(node, height, block_hash, folder)
                bar.update()


def _block(node: Node, height: int, block_hash: str, folder: Path | None) -> Any:
    kept = None if folder is None else folder / f"block_{height}.json.gz"
    if kept is not None and kept.exists():
        try:
            block = json.loads(gzip.decompress(kept.read_bytes()), parse_float=Decimal)
            if block.get("hash") == block_hash:
                return block
        except (OSError, EOFError, ValueError):
            pass  # a damaged or outdated entry is fetched again
    block, text = node.call("getblock", block_hash, 3)
    if kept is not None:
        with replacing(kept) as part:
            part.write_bytes(gzip.compress(text.encode(), compresslevel=3, mtime=0))
    return block


def _cookie(path: Path) -> tuple[str, str]:
    try:
        user, _, password = path.read_text().strip().partition(":")
    except OSError as error:
        raise DataError(path, "cookie", f"cannot be read ({error.strerror})", "give the node's .cookie file") from error
    if not password:
        raise DataError(path, "cookie", "is not of the form user:password", "give the node's .cookie file")
    return user, password


def _failure(reply: requests.Response) -> dict[str, Any]:
    """The `error` of a reply that is no success, empty if it tells none."""
    try:
        return dict(reply.json()["error"])
    except (ValueError, TypeError, KeyError):
        return {}


def _result(reply: str) -> tuple[Any, str]:
    """The `result` of a reply and its text, cut out so that it can be kept as the node wrote it."""
    match = re.search(r'"result"\s*:\s*', reply)
    if match is None:
        raise ValueError("no result")
    value, end = json.JSONDecoder(parse_float=Decimal).raw_decode(reply, match.end())
    return value, reply[match.end() : end]
