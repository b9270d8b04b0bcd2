"""From the ledger's arrays to the `Transactions` container: strings for hashes and addresses, truth, public labels.

Nothing here is a valid Bitcoin address: each begins with "sim". The prefix tells the script type, the rest is a
one-to-one scrambling of the id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from btcnb.data.coinjoin import PROTOCOLS
from btcnb.data.simulator.ledger import ADDRESSES, COINS, INPUTS, TXS, State, scramble
from btcnb.data.simulator.parameters import MECHANISM_NAMES, Dial, numbers
from btcnb.data.simulator.wallets import Registry
from btcnb.data.simulator.world import World
from btcnb.data.transactions import SCRIPT_TYPES, Transactions, Truth

Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

SCRIPT_TYPE = np.array(
    [
        SCRIPT_TYPES.index(name)
        for name in ("pubkeyhash", "scripthash", "scripthash", "witness_v0_keyhash", "witness_v0_scripthash")
    ],
    dtype=np.int8,
)
"""By script: position in `SCRIPT_TYPES`."""
NULLDATA = SCRIPT_TYPES.index("nulldata")
PREFIX = ("simP2PKH", "simP2SH", "simP2SH", "sim1q", "sim1wsh")
"""By script: how its addresses begin."""
ALPHABET = np.frombuffer(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", dtype=np.uint8)
ADDRESS_DIGITS = 20
LABELS = numbers("labels")
PRIVATE_KINDS = ("user",)
"""Kinds of entities whose addresses are never labelled."""


def to_transactions(world: World) -> Transactions:
    """The finished chain. Addresses that no transaction shows are left out."""
    state, config = world.ledger.state, world.config
    number = int(state.counts[TXS])
    initial, coins = world.ledger.initial_coins, int(state.counts[COINS])
    input_coin = state.input_coin[: state.counts[INPUTS]].astype(np.int64)
    used, rename = _used_addresses(world, initial, coins, input_coin)
    tx = state.tx[:number]
    transactions = _transaction_table(world, tx)
    inputs = _input_table(state, tx["sequence"], initial, input_coin, rename)
    outputs = _output_table(state, initial, coins, rename)
    return Transactions.checked(
        transactions,
        inputs,
        outputs,
        address_strings(state.random[1], used, state.address_script[used]),
        truth=_truth(world, used, tx),
        source=f"simulated economy (split {config.split}, blocks {config.start_block:,} to "
        f"{config.start_block + config.blocks - 1:,}, seed {config.seed})",
    )


def _used_addresses(world: World, initial: int, coins: int, input_coin: Array) -> tuple[Array, Array]:
    """Ids of the addresses that occur, shuffled, and new ids by old ones (the last slot maps -1 to -1).

    Shuffled, because addresses are made in an order that tells owners apart, and whatever breaks ties by id would see
    it.
    """
    state, config = world.ledger.state, world.config
    seen = np.zeros(int(state.counts[ADDRESSES]) + 1, dtype=bool)
    seen[state.coin_address[initial:coins]] = True
    seen[state.coin_address[input_coin]] = True
    seen[-1] = False
    used = np.random.default_rng([config.seed, config.start_block, 3]).permutation(np.flatnonzero(seen))
    rename = np.full(len(seen), -1, dtype=np.int64)
    rename[used] = np.arange(len(used))
    return used, rename


def _transaction_table(world: World, tx: npt.NDArray[np.void]) -> pd.DataFrame:
    block, index = tx["block"], _position_in_group(tx["block"])
    return pd.DataFrame(
        {
            "hash": hash_strings(world.ledger.state.random[1], 8 * np.arange(len(tx), dtype=np.uint64)),
            "block_number": block,
            "block_timestamp": world.times[block - world.config.start_block],
            "index": index,
            "is_coinbase": index == 0,
            **{name: tx[name] for name in ("version", "lock_time", "size", "virtual_size", "fee")},
        }
    )


def _input_table(state: State, sequence: Array, initial: int, coin: Array, rename: Array) -> pd.DataFrame:
    tx = state.input_tx[: len(coin)].astype(np.int64)
    inside = coin >= initial
    address = state.coin_address[coin]
    return pd.DataFrame(
        {
            "tx": tx,
            "index": _position_in_group(tx),
            "spent_output": np.where(inside, coin - initial, -1),
            "spent_transaction_hash": hash_strings(
                state.random[1], 8 * coin.astype(np.uint64) + np.uint64(4), missing=inside
            ),
            "spent_output_index": state.coin_index[coin],
            "address": rename[address],
            "value": state.coin_value[coin],
            "script_type": SCRIPT_TYPE[state.address_script[address]],
            "sequence": sequence[tx],
        }
    )


def _position_in_group(group: Array) -> Array:
    """0, 1, 2, … within each run of equal values, shape of `group`."""
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group))))


def _output_table(state: State, initial: int, coins: int, rename: Array) -> pd.DataFrame:
    rows = slice(initial, coins)
    address = state.coin_address[rows].astype(np.int64)
    return pd.DataFrame(
        {
            "tx": state.coin_tx[rows],
            "index": state.coin_index[rows],
            "address": rename[address],
            "value": state.coin_value[rows],
            "script_type": np.where(address >= 0, SCRIPT_TYPE[state.address_script[address]], NULLDATA),
        }
    )


def _truth(world: World, used: Array, tx: npt.NDArray[np.void]) -> Truth:
    registry, config = world.registry, world.config
    owner = np.array(registry.wallet_entity, dtype=np.int64)[world.ledger.state.address_wallet[used]]
    rng = np.random.default_rng([config.seed, config.start_block, 2])
    return Truth(
        owner=owner,
        entities=pd.DataFrame({"kind": registry.kinds, "name": registry.names}),
        label=address_labels(rng, registry, owner, config.label_share, world.dial),
        coinjoin=np.array(["", *PROTOCOLS], dtype=object)[tx["protocol"]],
        change=tx["change"].copy(),
        mechanism=np.array(MECHANISM_NAMES, dtype=object)[tx["mechanism"]],
    )


# --- strings ---


def hash_strings(base: np.uint64, counter: Words, missing: BoolArray | None = None) -> Any:
    """64 hexadecimal digits per counter (four scrambled words counter..counter+3), NaN where `missing`; a pandas
    string array."""
    present = counter if missing is None else counter[~missing]
    words = _scrambled(base + present[:, None] + np.arange(4, dtype=np.uint64)[None, :])  # (k, 4)
    digits, starts = words.astype(">u8").tobytes().hex().encode(), np.arange(0, 64 * len(present) + 1, 64)
    buffers = [None, pa.py_buffer(starts.tobytes()), pa.py_buffer(digits)]
    array = pa.Array.from_buffers(pa.large_string(), len(present), buffers)
    if missing is not None:
        array = array.take(pa.array(np.cumsum(~missing) - 1, mask=missing))
    dtype: Any = pd.StringDtype("pyarrow", na_value=np.nan)
    return dtype.__from_arrow__(array)


def address_strings(base: np.uint64, ids: npt.NDArray[np.int64], scripts: npt.NDArray[np.int8]) -> npt.NDArray[Any]:
    """One distinct string per address id, shape (ids,), dtype object."""
    strings = np.empty(len(ids), dtype=object)
    for script, prefix in enumerate(PREFIX):
        rows = np.flatnonzero(scripts == script)
        first = _scrambled(base ^ ids[rows].astype(np.uint64))  # one-to-one, so 13 digits of 5 bits keep ids apart
        second = _scrambled(first)
        digits = np.empty((len(rows), len(prefix) + ADDRESS_DIGITS), dtype=np.uint8)
        digits[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
        for place in range(ADDRESS_DIGITS):
            word, shift = (first, 5 * place) if place < 13 else (second, 5 * (place - 13))
            digits[:, len(prefix) + place] = ALPHABET[(word >> np.uint64(shift)).astype(np.uint8) & np.uint8(31)]
        strings[rows] = digits.view(f"S{digits.shape[1]}").ravel().astype(str).astype(object)
    return strings


def _scrambled(words: Words) -> Words:
    """`ledger.scramble` on every word."""
    with np.errstate(over="ignore"):
        return scramble.py_func(words)  # type: ignore[no-any-return]


# --- public labels ---


def address_labels(
    rng: np.random.Generator, registry: Registry, owner: Array, label_share: float, dial: Dial
) -> npt.NDArray[np.object_]:
    """A name per address, "" where it is not labelled; shape of `owner` (entity of each address).

    About `label_share` of the addresses of all services are labelled. Collections of labels cover a few services
    densely and most hardly at all, know some under two or three names, and name former owners. At `disorder` 0 every
    service is covered alike, under its one true name.
    """
    public = np.array([kind not in PRIVATE_KINDS for kind in registry.kinds])
    labelled = public[owner] & (rng.random(len(owner)) < _coverage(rng, public, owner, label_share, dial)[owner])
    names = np.array(registry.names, dtype=object)[owner]
    names = _aliased(rng, names, owner, len(registry.kinds), dial)
    stale = np.flatnonzero(labelled & (rng.random(len(owner)) < dial("label-stale")))
    former = rng.choice(np.flatnonzero(public), size=len(stale))
    names[stale] = np.array(registry.names, dtype=object)[former]
    return np.where(labelled, names, "")


def _coverage(
    rng: np.random.Generator, public: BoolArray, owner: Array, share: float, dial: Dial
) -> npt.NDArray[np.float64]:
    """Per entity: the share of its addresses that are labelled; `share` on average over addresses."""
    bias = np.exp(rng.normal(0.0, dial("label-bias"), len(public)))
    held = np.bincount(owner[public[owner]], minlength=len(public)).astype(np.float64)
    low, high = -50.0, 50.0  # logarithm of what all are multiplied with; coverage is capped at 1, so it is searched
    for _ in range(60):
        middle = (low + high) / 2
        mean = float((np.minimum(1.0, bias * np.exp(middle)) * held).sum() / max(held.sum(), 1.0))
        low, high = (middle, high) if mean < share else (low, middle)
    return np.minimum(1.0, bias * np.exp(high))


def _aliased(
    rng: np.random.Generator, names: npt.NDArray[np.object_], owner: Array, entities: int, dial: Dial
) -> npt.NDArray[np.object_]:
    """The names, some replaced by "NAME (b)" or "NAME (c)" for services that go by several."""
    number = np.where(
        rng.random(entities) < dial("label-alias"), rng.integers(LABELS.aliases[0], LABELS.aliases[1] + 1, entities), 1
    )
    other = (number[owner] > 1) & (rng.random(len(owner)) >= LABELS.first_name)
    letter = np.where(number[owner] == 3, rng.integers(2, size=len(owner)), 0)
    places = np.flatnonzero(other)
    names = names.copy()
    names[places] = names[places] + np.array([" (b)", " (c)"], dtype=object)[letter[places]]
    return names
