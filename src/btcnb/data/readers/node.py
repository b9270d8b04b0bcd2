"""A Bitcoin Core node behind JSON-RPC. Its credentials appear in no message and in no log."""

from __future__ import annotations

import gzip
import json
import queue
import re
import threading
from collections.abc import Callable, Iterator
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
MAX_ANSWER = 2**29
"""Bytes of an answer that are read; a block with its previous outputs has some 20 million."""
_WARMING_UP = -28  # Bitcoin Core's error code while it loads its index
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*|\[[0-9a-f:.]+\]", re.IGNORECASE)


class _PassingError(Exception):
    """A failure that may pass."""


class Node:
    """How to reach a node. The credentials are left out of `url`, of `repr`, of messages and of logs.

    url:     may hold `user:password@`, percent-encoded where they hold `/ ? # @`; what is no address is refused at once
    timeout: seconds for the whole of an answer
    """

    def __init__(self, url: str, user: str = "", password: str = "", timeout: float = 120.0) -> None:
        if not (isinstance(user, str) and isinstance(password, str)):
            raise ParameterError("user and password: must be text.")
        self.timeout = gates.real("timeout", timeout, "[0.001, inf)")
        self.url, told, secret = _parsed(url)
        self.user, self.password = user or told, password or secret
        self._connection = requests.Session()  # kept alive

    def __repr__(self) -> str:
        return f"Node({self.url!r})"

    @classmethod
    def at(
        cls, url: str, user: str | None = None, password: str | None = None, cookie: str | Path | None = None
    ) -> Node:
        """A node from a URL that may hold `user:password@`, from both given apart, or from the node's cookie file."""
        if cookie is not None:
            user, password = _cookie(path_of(cookie, "cookie").expanduser())
        return cls(url, user or "", password or "")

    def call(self, method: str, *params: Any) -> tuple[Any, str]:
        """A result, with amounts as decimals, and the text of the whole reply.

        A failure that may pass is tried again, after ever longer waits.
        """
        retry = Retry(total=RETRIES, backoff_factor=BACKOFF, allowed_methods=None)
        while True:
            try:
                return self._attempt(method, params)
            except _PassingError as problem:
                try:
                    retry = retry.increment("POST", self.url, error=HTTPError(str(problem)))
                except MaxRetryError:
                    problem_now = f"no answer after {RETRIES + 1} attempts ({problem})"
                    remedy = (
                        "check that the node runs, then run again: blocks in the cache folder are not fetched twice"
                    )
                    raise DataError(self.url, method, problem_now, remedy) from None
                retry.sleep()

    def block_count(self) -> int:
        """Height of the chain's tip."""
        count, _ = self.call("getblockcount")
        if type(count) is not int or not 0 <= count < 2**32:
            raise self._strange("getblockcount", count)
        return count

    def block_hash(self, height: int) -> str:
        """Hash of the block of a height."""
        told, _ = self.call("getblockhash", height)
        if not isinstance(told, str) or not re.fullmatch("[0-9a-f]{64}", told):
            raise self._strange(f"getblockhash {height}", told)
        return told

    def block(self, block_hash: str) -> tuple[dict[str, Any], str]:
        """A block with transactions and previous outputs, and the reply it came in."""
        block, text = self.call("getblock", block_hash, 3)
        if not isinstance(block, dict) or block.get("hash") != block_hash:
            raise self._strange(f"getblock {block_hash}", block)
        return block, text

    def _attempt(self, method: str, params: Any) -> tuple[Any, str]:
        """The result of one request, and the reply's text; `_PassingError` where another attempt may help."""
        status, text = self._answer({"jsonrpc": "1.0", "id": method, "method": method, "params": params}, method)
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
        if error:
            message = error.get("message", error) if isinstance(error, dict) else error
            what = " ".join([method, *(str(one) for one in params if type(one) is int)][:2])
            raise DataError(
                self.url, what, f"the node answers: {self._shown(message)[:200]}", "check heights and pruning"
            )
        if status != 200:
            raise _PassingError(f"status {status}")
        if not isinstance(reply, dict) or "result" not in reply:
            raise self._strange(method, reply)
        return reply["result"], text

    def _answer(self, body: Any, method: str) -> tuple[int, str]:
        """Status and text of one answer. The text of a foreign error may repeat the request and is not shown."""
        try:
            status, content = in_time(lambda: self._exchange(body), self.timeout)
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
        if len(content) > MAX_ANSWER:
            problem = f"the answer has more than {MAX_ANSWER} bytes"
            raise DataError(self.url, method, problem, "check that a Bitcoin Core node is at this address")
        return status, content.decode(errors="replace")

    def _exchange(self, body: Any) -> tuple[int, bytes]:
        credentials: Any = (self.user.encode(), self.password.encode())
        options: Any = {"timeout": self.timeout, "allow_redirects": False, "stream": True}
        with self._connection.post(self.url, json=body, auth=credentials, **options) as reply:
            return reply.status_code, reply.raw.read(MAX_ANSWER + 1, decode_content=True)

    def _shown(self, answer: Any) -> str:
        """An answer on one line, without the password, should it repeat that."""
        text = plain(answer)
        return text.replace(self.password, "…") if self.password else text

    def _strange(self, method: str, answer: Any) -> DataError:
        problem = f"the answer is not what it should be ({self._shown(repr(answer))[:60]})"
        return DataError(self.url, method, problem, "check that a Bitcoin Core node is at this address")


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
    for height in tqdm(range(first, last + 1), desc="blocks", unit="block", leave=False, disable=hidden):
        yield (
            f"{node.url}, block {height}",
            _block(node, node.block_hash(height), folder and folder / f"block_{height}.json.gz"),
        )


def _block(node: Node, block_hash: str, kept: Path | None) -> Any:
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
        source, remedy = "address of the node", "give user and password apart, or percent-encode / ? # @ in them"
        raise DataError(source, "url", "is not of the form http://host:port", remedy)
    return found
