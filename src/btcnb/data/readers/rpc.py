"""A Bitcoin Core node behind JSON-RPC: polite, patient, and silent about its credentials."""

from __future__ import annotations

import gzip
import json
import math
import queue
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from tqdm import tqdm
from urllib3.exceptions import HTTPError, NameResolutionError

from btcnb import gates
from btcnb.data.contract import plain
from btcnb.data.readers.archives import Member
from btcnb.data.readers.atomic import replacing
from btcnb.data.readers.guard import UNREADABLE
from btcnb.errors import DataError, ParameterError

WARMING_UP = -28
"""Bitcoin Core's error code while it loads its index."""
HASHES_A_CALL = 500
MAX_ANSWER = 2**29
"""Bytes of an answer that are read; a block with its previous outputs has some 20 million."""
_CHUNK = 2**16
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*|\[[0-9a-f:.]+\]", re.IGNORECASE)


@dataclass(frozen=True)
class Node:
    """How to reach a node. The credentials are left out of `url`, of `repr`, of messages and of logs.

    `url` may hold `user:password@`, percent-encoded where they hold `/ ? # @`; what is no address is refused at once.
    """

    url: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    timeout: float = 120.0  # seconds for the whole of an answer
    retries: int = 6  # further attempts after a failure that may pass
    backoff: float = 0.5  # seconds before the first of them; doubled each time
    connection: requests.Session = field(default_factory=requests.Session, repr=False, compare=False)  # kept alive

    def __post_init__(self) -> None:
        if not (isinstance(self.user, str) and isinstance(self.password, str)):
            raise ParameterError("user and password: must be text.")
        url, user, password = _parsed(self.url)
        object.__setattr__(self, "url", url)
        object.__setattr__(self, "user", self.user or user)
        object.__setattr__(self, "password", self.password or password)
        for name, low in (("timeout", 1e-3), ("retries", 0), ("backoff", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < math.inf:
                raise ParameterError(f"{name}: {value!r:.80} is not a number of at least {low}.")

    @classmethod
    def at(
        cls, url: str, user: str | None = None, password: str | None = None, cookie: str | Path | None = None
    ) -> Node:
        """A node from a URL that may hold `user:password@`, from both given apart, or from the node's cookie file."""
        if cookie is not None:
            file: Any = gates.instance("cookie", cookie, (str, Path))  # type: ignore[arg-type]
            user, password = _cookie(Path(file).expanduser())
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
        """The reply; a failure that may pass (nobody there, half an answer, still warming up) is tried again."""
        problem = ""
        for attempt in range(int(self.retries) + 1):
            if attempt:
                time.sleep(self.backoff * 2 ** (attempt - 1))
            answer = self._ask(body, method)
            if isinstance(answer, str):
                problem = answer
                continue
            status, text = answer
            if status in (401, 403):
                raise self._refused(status)
            try:
                reply = json.loads(text, parse_float=Decimal)
            except (ValueError, RecursionError):
                problem = "an answer cut short" if status == 200 else f"status {status}"
                continue
            error = reply.get("error") if isinstance(reply, dict) else None
            if isinstance(error, dict) and error.get("code") == WARMING_UP:
                problem = "still loading its index"
                continue
            self._raise_error(error, method)
            if status == 200:
                return reply, text
            problem = f"status {status}"
        raise DataError(
            self.url,
            method,
            f"no answer after {self.retries + 1} attempts ({problem})",
            "check that the node runs, then run again: blocks in the cache folder are not fetched twice",
        )

    def _ask(self, body: Any, method: str) -> tuple[int, str] | str:
        """Status and text of one answer, or what went wrong and may pass.

        The time-out of a socket begins again with every byte, so another thread asks and this one keeps the time.
        """
        box: queue.Queue[Any] = queue.Queue(1)
        deadline = time.monotonic() + self.timeout

        def ask() -> None:
            try:
                box.put(self._exchange(body, deadline))
            except Exception as error:  # whatever it is, the waiting thread must hear of it
                box.put(error)

        threading.Thread(target=ask, daemon=True).start()
        try:
            answer = box.get(timeout=self.timeout)
        except queue.Empty:
            answer = TimeoutError()
        if isinstance(answer, TimeoutError | requests.Timeout):
            problem = f"no whole answer within {self.timeout:g} seconds"
            raise DataError(self.url, method, problem, "check the node, or give it a longer timeout")
        if not isinstance(answer, Exception):
            return answer
        if isinstance(getattr(answer.args[0] if answer.args else None, "reason", None), NameResolutionError):
            raise DataError(self.url, method, "there is no host of that name", "check the address of the node")
        if not isinstance(answer, requests.RequestException | HTTPError) or isinstance(answer, ValueError):
            raise DataError(self.url, method, f"cannot be asked ({type(answer).__name__})", "check the address")
        return type(answer).__name__  # its text may repeat the request

    def _exchange(self, body: Any, deadline: float) -> tuple[int, str]:
        credentials: Any = (self.user.encode(), self.password.encode())
        options: Any = {"timeout": self.timeout, "allow_redirects": False, "stream": True}
        with self.connection.post(self.url, json=body, auth=credentials, **options) as reply:
            content = bytearray()
            for chunk in reply.iter_content(_CHUNK):
                content += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
                if len(content) > MAX_ANSWER:
                    raise OverflowError
        return reply.status_code, content.decode(errors="replace")

    def _refused(self, status: int) -> DataError:
        if status == 401:
            return DataError(self.url, "credentials", "the node refuses them", "check user, password or cookie file")
        return DataError(self.url, "credentials", "the node forbids this", "check rpcallowip and rpcwhitelist")

    def _raise_error(self, error: Any, method: str) -> None:
        if error:
            message = error.get("message", error) if isinstance(error, dict) else error
            problem = f"the node answers: {self._told(message)[:200]}"
            raise DataError(self.url, method, problem, "check heights and pruning")

    def _told(self, answer: Any) -> str:
        """An answer on one line, without the password, should it repeat that."""
        text = plain(answer)
        return text.replace(self.password, "…") if self.password else text

    def _strange(self, method: str, answer: Any) -> DataError:
        problem = f"the answer is not what it should be ({self._told(repr(answer))[:60]})"
        return DataError(self.url, method, problem, "check that a Bitcoin Core node is at this address")


def fetch_blocks(
    node: Node, start: int | None, end: int | None, cache: str | Path | None, progress: bool | None
) -> Iterator[tuple[str, Any]]:
    """(place for messages, block) for each height from `start` to `end`, from the cache where it has the same hash."""
    first = 0 if start is None else start
    last = node.block_count() if end is None else end
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
            reply = json.loads(Member(kept.name, kept).read(), parse_float=Decimal)
            block = reply.get("result", reply)
            if block["hash"] == block_hash:
                return block
        except (*UNREADABLE, DataError):
            pass  # a damaged or outdated entry is fetched again
    block, text = node.block(block_hash)
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


def _parsed(url: Any) -> tuple[str, str, str]:
    """The address without credentials, the user, and the password. The text of a bad address shows nowhere."""
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
