"""A Bitcoin Core node behind JSON-RPC. Its credentials appear in no message and in no log."""

from __future__ import annotations

import gzip
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from tqdm import tqdm
from urllib3.exceptions import HTTPError, MaxRetryError, NameResolutionError
from urllib3.util import Retry

from btcnb import gates
from btcnb.data.readers.files import MISSHAPEN, Member, path_of, replacing
from btcnb.data.tables import plain
from btcnb.errors import DataError, ParameterError

T = TypeVar("T")

RETRIES = 6
"""Further attempts after a failure that may pass: nobody there, half an answer, a node that loads its index."""
BACKOFF = 0.5
"""Seconds; the wait before a further attempt doubles each time."""
HASHES_A_CALL = 500
MAX_ANSWER = 2**29
"""Bytes of an answer that are read; a block with its previous outputs has some 20 million."""
_WARMING_UP = -28  # Bitcoin Core's error code while it loads its index
_CHUNK = 2**16
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*|\[[0-9a-f:.]+\]", re.IGNORECASE)


class _PassingError(Exception):
    """A failure that may pass."""


def in_time(ask: Callable[[], T], seconds: float) -> T:
    """What `ask` returns; `requests.Timeout` if it takes longer.

    The time-out of a socket begins again with every byte, so another thread asks and this one keeps the time.
    """
    box: queue.Queue[tuple[T | None, Exception | None]] = queue.Queue(1)

    def run() -> None:
        try:
            box.put((ask(), None))
        except Exception as error:  # the waiting thread must learn of any error
            box.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        found, error = box.get(timeout=seconds)
    except queue.Empty:
        raise requests.Timeout from None
    if error is not None:
        raise error
    return cast(T, found)


@dataclass(frozen=True)
class Node:
    """How to reach a node. The credentials are left out of `url`, of `repr`, of messages and of logs.

    `url` may hold `user:password@`, percent-encoded where they hold `/ ? # @`; what is no address is refused at once.
    """

    url: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    timeout: float = 120.0  # seconds for the whole of an answer
    connection: requests.Session = field(default_factory=requests.Session, repr=False, compare=False)  # kept alive

    def __post_init__(self) -> None:
        if not (isinstance(self.user, str) and isinstance(self.password, str)):
            raise ParameterError("user and password: must be text.")
        gates.real("timeout", self.timeout, "[0.001, inf)")
        url, user, password = _parsed(self.url)
        object.__setattr__(self, "url", url)
        object.__setattr__(self, "user", self.user or user)
        object.__setattr__(self, "password", self.password or password)

    @classmethod
    def at(
        cls, url: str, user: str | None = None, password: str | None = None, cookie: str | Path | None = None
    ) -> Node:
        """A node from a URL that may hold `user:password@`, from both given apart, or from the node's cookie file."""
        if cookie is not None:
            user, password = _cookie(path_of(cookie, "cookie").expanduser())
        return cls(url, user or "", password or "")

    def call(self, method: str, *params: Any) -> tuple[Any, str]:
        """A result, with amounts as decimals, and the text of the whole reply."""
        reply, text = self._post({"jsonrpc": "1.0", "id": method, "method": method, "params": params}, method)
        if not isinstance(reply, dict) or "result" not in reply:
            raise self._strange(method, reply)
        return reply["result"], text

    def block_count(self) -> int:
        """Height of the chain's tip."""
        count, _ = self.call("getblockcount")
        if type(count) is not int or not 0 <= count < 2**32:
            raise self._strange("getblockcount", count)
        return count

    def block_hashes(self, heights: range) -> list[str]:
        """Block hashes of the given heights, in one request."""
        asked = [{"jsonrpc": "1.0", "id": h, "method": "getblockhash", "params": [h]} for h in heights]
        told, _ = self._post(asked, "getblockhash")
        if not isinstance(told, list) or not all(isinstance(reply, dict) for reply in told):
            raise self._strange("getblockhash", told)
        replies = {reply.get("id"): reply for reply in told if type(reply.get("id")) is int}
        found = []
        for height in heights:
            reply = replies.get(height, {})
            self._raise_error(reply.get("error"), f"getblockhash {height}")
            block_hash = reply.get("result")
            if not isinstance(block_hash, str) or not re.fullmatch("[0-9a-f]{64}", block_hash):
                raise self._strange(f"getblockhash {height}", block_hash)
            found.append(block_hash)
        return found

    def block(self, block_hash: str) -> tuple[dict[str, Any], str]:
        """A block with transactions and previous outputs, and the reply it came in."""
        block, text = self.call("getblock", block_hash, 3)
        if not isinstance(block, dict) or block.get("hash") != block_hash:
            raise self._strange(f"getblock {block_hash}", block)
        return block, text

    def _post(self, body: Any, method: str) -> tuple[Any, str]:
        """The reply; a failure that may pass is tried again, after ever longer waits."""
        retry = Retry(total=RETRIES, backoff_factor=BACKOFF, allowed_methods=None)
        while True:
            try:
                return self._attempt(body, method)
            except _PassingError as problem:
                try:
                    retry = retry.increment("POST", self.url, error=HTTPError(str(problem)))
                except MaxRetryError:
                    raise DataError(
                        self.url,
                        method,
                        f"no answer after {RETRIES + 1} attempts ({problem})",
                        "check that the node runs, then run again: blocks in the cache folder are not fetched twice",
                    ) from None
                retry.sleep()

    def _attempt(self, body: Any, method: str) -> tuple[Any, str]:
        """The reply to one request, and its text; `_PassingError` where another attempt may help."""
        status, text = self._answer(body, method)
        if status == 401:
            raise DataError(self.url, "credentials", "the node refuses them", "check user, password or cookie file")
        if status == 403:
            raise DataError(self.url, "credentials", "the node forbids this", "check rpcallowip and rpcwhitelist")
        try:
            reply = json.loads(text, parse_float=Decimal)
        except (ValueError, RecursionError):
            raise _PassingError("an answer cut short" if status == 200 else f"status {status}") from None
        error = reply.get("error") if isinstance(reply, dict) else None
        if isinstance(error, dict) and error.get("code") == _WARMING_UP:
            raise _PassingError("still loading its index")
        self._raise_error(error, method)
        if status != 200:
            raise _PassingError(f"status {status}")
        return reply, text

    def _answer(self, body: Any, method: str) -> tuple[int, str]:
        """Status and text of one answer. The text of a foreign error may repeat the request and is not shown."""
        deadline = time.monotonic() + self.timeout
        try:
            return in_time(lambda: self._exchange(body, deadline), self.timeout)
        except requests.Timeout:
            problem = f"no whole answer within {self.timeout:g} seconds"
            raise DataError(self.url, method, problem, "check the node, or give it a longer timeout") from None
        except (requests.RequestException, HTTPError) as error:
            if isinstance(getattr(error.args[0] if error.args else None, "reason", None), NameResolutionError):
                problem, remedy = "there is no host of that name", "check the address of the node"
                raise DataError(self.url, method, problem, remedy) from None
            if isinstance(error, ValueError):  # an address that requests does not take
                problem = f"cannot be asked ({type(error).__name__})"
                raise DataError(self.url, method, problem, "check the address") from None
            raise _PassingError(type(error).__name__) from None

    def _exchange(self, body: Any, deadline: float) -> tuple[int, str]:
        credentials: Any = (self.user.encode(), self.password.encode())
        options: Any = {"timeout": self.timeout, "allow_redirects": False, "stream": True}
        with self.connection.post(self.url, json=body, auth=credentials, **options) as reply:
            content = bytearray()
            for chunk in reply.iter_content(_CHUNK):
                content += chunk
                if time.monotonic() > deadline:
                    raise requests.Timeout
                if len(content) > MAX_ANSWER:
                    problem = f"the answer has more than {MAX_ANSWER} bytes"
                    raise DataError(self.url, "answer", problem, "check that a Bitcoin Core node is at this address")
        return reply.status_code, content.decode(errors="replace")

    def _raise_error(self, error: Any, method: str) -> None:
        if error:
            message = error.get("message", error) if isinstance(error, dict) else error
            problem = f"the node answers: {self._shown(message)[:200]}"
            raise DataError(self.url, method, problem, "check heights and pruning")

    def _shown(self, answer: Any) -> str:
        """An answer on one line, without the password, should it repeat that."""
        text = plain(answer)
        return text.replace(self.password, "…") if self.password else text

    def _strange(self, method: str, answer: Any) -> DataError:
        problem = f"the answer is not what it should be ({self._shown(repr(answer))[:60]})"
        return DataError(self.url, method, problem, "check that a Bitcoin Core node is at this address")


def node_blocks(
    node: Node, start: int | None, end: int | None, cache: str | Path | None, progress: bool | None
) -> Iterator[tuple[str, Any]]:
    """(place for messages, block) for each height from `start` to `end`, from the cache where it has the same hash."""
    first = 0 if start is None else start
    last = node.block_count() if end is None else end
    if first < 0 or last < first:
        raise DataError(node.url, "start, end", f"{first} to {last} is no range of heights", "start at 0, end after it")
    folder = None if cache is None else path_of(cache, "cache")
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
            reply = json.loads(Member(kept.name, kept).read(), parse_float=Decimal)
            block = reply.get("result", reply)
            if block["hash"] == block_hash:
                return block
        except (*MISSHAPEN, DataError):
            pass  # a damaged or outdated entry is fetched again
    block, text = node.block(block_hash)
    if kept is not None:
        with replacing(kept) as part:
            part.write_bytes(gzip.compress(text.encode(), compresslevel=3, mtime=0))
    return block


def _cookie(path: Path) -> tuple[str, str]:
    try:
        user, _, password = path.read_text().strip().partition(":")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise DataError(path, "cookie", f"cannot be read ({reason})", "give the node's .cookie file") from error
    if not password:
        raise DataError(path, "cookie", "is not of the form user:password", "give the node's .cookie file")
    return user, password


def _parsed(url: Any) -> tuple[str, str, str]:
    """The address without credentials, the user, and the password. The text of a bad address is not shown."""
    found = None
    try:
        parts = urlsplit(str(url).strip())
        host, port = parts.hostname or "", parts.port
        rest = parts.path + parts.query + parts.fragment
        if parts.scheme in ("http", "https") and _HOST.fullmatch(f"[{host}]" if ":" in host else host):
            clean = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
            if "@" not in rest and port != 0 and clean.isprintable() and " " not in clean:
                found = clean, unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        pass  # its text repeats the address
    if found is None:
        raise DataError(
            "address of the node",
            "url",
            "is not of the form http://host:port",
            "give user and password apart, or percent-encode / ? # @ in them",
        )
    return found
