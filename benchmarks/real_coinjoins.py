"""Recorded CoinJoins: whose inputs encoders keep apart, before and after repulsion.

    for listed in real_chains(folder): ...            # chains with marked CoinJoins; owners where wallets are known
    judged(model, listed)                             # a line for each half of the list and each clustering

    given = lesson(chains, recipe.train)              # graphs around early CoinJoins, which may teach repulsion
    run = repelled_by_lists(recipe, given)            # the recipe's encoder, taught repulsion by them
    seen(given, listed)                               # how much of the later half stood in a graph that taught

Of an earlier half the first four fifths teach and the rest steers: validation is later than teaching and earlier than
judging. The contrastive loss still learns from simulated graphs, for the lists hold no ordinary payments. Surroundings
of early CoinJoins are cut out of the chain as it was then; no later CoinJoin of any list is in them. Wallets stay the
same over time, and a list tells nobody's wallet: addresses can be counted (`seen`), owners cannot.

Three kinds of evidence, never mixed up: *real* CoinJoins of mainnet (nobody knows their owners; every pair counts as
one of strangers, as in the paper), a *regtest* network on which real wallets ran real rounds, and *emulated* rounds; of
the last two every wallet is known.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import gates
from btcnb.data import Transactions, read_bitcoin_core, read_dumplings
from btcnb.data.coinjoin.lists import LISTED, read_emulated
from btcnb.data.readers import attach_wallets
from btcnb.data.readers.assemble import MissingOutputsWarning
from btcnb.data.readers.files import MISSHAPEN, reading
from btcnb.data.transactions import Piece, Truth
from btcnb.errors import DataError
from btcnb.experiments.coinjoin import Apart, Mix, apart, inputs_of, surroundings
from btcnb.experiments.coinjoin_trial import engine, fits, short_name
from btcnb.experiments.local import HEURISTICS
from btcnb.experiments.recipe import Recipe
from btcnb.experiments.repulsion import coinjoin_graph
from btcnb.experiments.stages import TRAINING, training_graph
from btcnb.learn import CoinJoinGraph, Encoder, Run, TrainConfig, train

IntArray = npt.NDArray[np.int64]

REAL, REGTEST, EMULATED = "real", "regtest", "emulated"
HALVES = ("early", "late")
LISTS = {
    name: "wasabi1" if len(names) > 1 else names[0] for name, names in LISTED.items() if names != ("whirlpool-tx0",)
}
"""Files of the Dumplings project that list mixes -> their protocol; a list of Wasabi 1 does not tell its versions."""
WIDTH = 4
"""Transactions that a step of the search for surroundings follows, as for the simulated ones at size quick."""
COLUMNS = [
    "kind", "archive", "protocol", "half", "from", "to", "coinjoins", "too_large", "unpaired", "one_wallet",
    "clustering", "TN", "strangers", "own", "pairs", "own_pairs", "wallets_apart", "wallets_together",
]  # fmt: skip


class Chain(NamedTuple):
    """Recorded transactions, those of them that are CoinJoins of one list, and what is known of them."""

    kind: str  # real, regtest, emulated
    archive: str
    protocol: str
    txs: Transactions
    mixes: IntArray  # ids, in order of time; each has two distinct input addresses or more
    whole: bool  # whether the chain is small enough to be one graph
    unpaired: int = 0  # listed, but with fewer than two distinct input addresses: there is no pair to judge
    one_wallet: int = 0  # listed, but signed by one wallet alone: there are no strangers to keep apart

    def halves(self) -> dict[str, IntArray]:
        """The earlier and the later CoinJoins, ids in order of time; of an odd number the earlier half has one more."""
        return dict(zip(HALVES, np.array_split(self.mixes, 2), strict=True))


class Judged(NamedTuple):
    """One clustering of a chain: pairs of each CoinJoin, and pairs of any two addresses with known wallets."""

    counts: list[Apart]
    wallets_apart: float = float("nan")  # % of pairs of two wallets that are apart
    wallets_together: float = float("nan")  # % of pairs of one wallet that are together


def real_chains(folder: str | Path) -> Iterator[Chain]:
    """Every list of CoinJoins below a folder that holds dumplings/, bitcoin-core-regtest/, regtest-wallets/ or some."""
    place = Path(folder)
    if not place.is_dir():
        raise DataError(place, "folder", "is not there", "name the folder that holds dumplings/ and others")
    for path in sorted((place / "dumplings").glob("*.zip")):
        yield from _dumplings(path)
    for path in sorted((place / "bitcoin-core-regtest").glob("*.zip")):
        yield _regtest(path)
    for path in sorted((place / "regtest-wallets").glob("*.json.gz")):
        yield _emulated(path)


def judged(model: Encoder, chain: Chain, most: int = 40, seed: int = 0, halves: Sequence[str] = HALVES) -> pd.DataFrame:
    """What every clustering does to the CoinJoins of a chain, the earlier and the later half apart: `COLUMNS`.

    most: CoinJoins of each half that are judged, drawn at random; `too_large` of them have surroundings that are too
    large (see `fits`) and are left out of `coinjoins`. `unpaired` and `one_wallet` are those of the whole list that
    have no pair, or no pair of strangers, and are not judged.
    halves: the halves that are judged; which CoinJoins are drawn does not depend on it.
    Shares are in %, means over CoinJoins; `strangers` and `own` are of pairs of two known wallets, and of one; NaN
    where no wallet is known. Where the chain is one graph, `wallets_apart` and `wallets_together` are the same for
    pairs of any two of its addresses, whether they are inputs of a CoinJoin or not.
    """
    gates.instance("chain", chain, Chain)
    number, seed = gates.whole("most", most, "[1, inf)"), gates.whole("seed", seed, "[0, 2147483647]")
    wanted = [gates.choice("a half", half, HALVES) for half in gates.items("halves", halves)]
    chosen = {
        half: np.sort(
            np.random.default_rng([seed, HALVES.index(half)]).choice(ids, min(number, len(ids)), replace=False)
        )
        for half, ids in chain.halves().items()
        if half in wanted and len(ids)
    }
    found = _whole(model, chain, chosen) if chain.whole else _local(model, chain, chosen, seed)
    lines: list[dict[str, Any]] = []
    for half, ids in chosen.items():
        fixed: dict[str, Any] = {"kind": chain.kind, "archive": chain.archive, "protocol": chain.protocol}
        fixed |= {"half": half, "unpaired": chain.unpaired, "one_wallet": chain.one_wallet, **_days(chain.txs, ids)}
        lines += [fixed | line for line in _lines(found[half], len(ids))]
    return pd.DataFrame(lines, columns=COLUMNS)


def _local(model: Encoder, chain: Chain, chosen: dict[str, IntArray], seed: int) -> dict[str, dict[str, Judged]]:
    """Every CoinJoin in its own surroundings."""
    found: dict[str, dict[str, Judged]] = {}
    for half, ids in chosen.items():
        around = [mix for mix in surroundings(chain.txs, ids, seed, width=WIDTH) if fits(mix)]
        mine: dict[str, Judged] = {}
        locals_ = engine(model, chain.txs).run(mix.piece.txs for mix in around)
        for mix, local in zip(around, locals_, strict=True):
            for name, labels in local.labels.items():
                mine.setdefault(short_name(name), Judged([])).counts.append(apart(mix, labels))
        found[half] = mine or {HEURISTICS: Judged([])}  # a line says that all were too large
    return found


def _whole(model: Encoder, chain: Chain, chosen: dict[str, IntArray]) -> dict[str, dict[str, Judged]]:
    """All transactions are one graph, clustered once, and every CoinJoin is judged in it."""
    if not chosen:
        return {}
    txs = chain.txs
    piece = Piece(txs, np.arange(len(txs)), np.arange(txs.num_addresses))
    everybody = Mix(-1, piece, np.arange(txs.num_addresses))
    (local,) = engine(model, txs).run([txs])
    wallets = {name: apart(everybody, labels) for name, labels in local.labels.items()}
    found: dict[str, dict[str, Judged]] = {}
    for half, ids in chosen.items():
        mixes = [Mix(int(tx), piece, inputs) for tx, inputs in zip(ids, inputs_of(txs, ids), strict=True)]
        found[half] = {
            short_name(name): Judged(
                [apart(mix, labels) for mix in mixes],
                _mean([wallets[name].strangers_apart], [wallets[name].strangers]),
                _mean([wallets[name].own_together], [wallets[name].own]),
            )
            for name, labels in local.labels.items()
        }
    return found


def _lines(found: dict[str, Judged], drawn: int) -> Iterator[dict[str, Any]]:
    for name, (counts, wallets_apart, wallets_together) in found.items():
        yield {
            "coinjoins": len(counts),
            "too_large": drawn - len(counts),
            "clustering": name,
            "TN": _mean([c.apart for c in counts], [c.pairs for c in counts]),
            "strangers": _mean([c.strangers_apart for c in counts], [c.strangers for c in counts]),
            "own": _mean([c.own_together for c in counts], [c.own for c in counts]),
            "pairs": sum(c.pairs for c in counts),
            "own_pairs": sum(c.own for c in counts),
            "wallets_apart": wallets_apart,
            "wallets_together": wallets_together,
        }


def _mean(part: Sequence[int], whole: Sequence[int]) -> float:
    shares = [100 * p / w for p, w in zip(part, whole, strict=True) if w]
    return float(np.mean(shares)) if shares else float("nan")


def _days(txs: Transactions, chosen: IntArray) -> dict[str, str]:
    time = pd.to_datetime(txs.transactions["block_timestamp"].to_numpy()[chosen], unit="s")
    return {"from": time.min().date().isoformat(), "to": time.max().date().isoformat()}


def _dumplings(path: Path) -> Iterator[Chain]:
    txs = read_dumplings(path)
    files = txs.transactions["file"].str.split("+")
    for name, protocol in LISTS.items():
        listed = np.array([name in row for row in files])
        if listed.any():
            yield _marked(REAL, path.stem, protocol, txs, np.flatnonzero(listed))


def _regtest(path: Path) -> Chain:
    """Rounds are the transactions that two wallets or more sign."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingOutputsWarning)
        txs = read_bitcoin_core(path)
    if txs.truth is None:
        raise DataError(path, "wallets_info.json", "is missing", "without it nobody knows which transactions are mixes")
    return _marked(REGTEST, path.stem, "wasabi2", txs, np.flatnonzero(_signers(txs) > 1))


def _emulated(path: Path) -> Chain:
    """Every transaction is a round; more than a quarter of them have the coins of one wallet and of nobody else."""
    txs = attach_wallets(read_emulated(path), emulated_wallets(path))
    several = _signers(txs) > 1
    chain = _marked(EMULATED, path.name.split(".")[0], "wasabi2", txs, np.flatnonzero(several))
    return chain._replace(one_wallet=int((~several).sum()))


def _signers(txs: Transactions) -> IntArray:
    """Known wallets that sign each transaction, (T,)."""
    owner = np.empty(0, dtype=np.int64) if txs.truth is None else txs.truth.owner
    spent = [owner[each] for each in inputs_of(txs, np.arange(len(txs)))]
    return np.array([len(np.unique(each[each >= 0])) for each in spent], dtype=np.int64)


def emulated_wallets(path: str | Path) -> dict[str, str]:
    """Address -> wallet, from a file of emulated rounds."""
    owners: dict[str, str] = {}
    with reading(str(path), "coinjoins", "name no wallets", "fetch it again", MISSHAPEN):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            content = json.load(stream)
        for each in content["coinjoins"].values():
            for coin in (*each["inputs"].values(), *each["outputs"].values()):
                owners[str(coin["address"])] = str(coin["wallet_name"])
    return owners


def _marked(kind: str, archive: str, protocol: str, txs: Transactions, mixes: IntArray) -> Chain:
    """Only CoinJoins with two input addresses or more, others are counted; without wallets no owner is known."""
    if txs.truth is None:
        txs = replace(txs, truth=Truth(np.full(txs.num_addresses, -1, dtype=np.int64)))
    several = np.array([len(each) >= 2 for each in inputs_of(txs, mixes)], dtype=bool)
    time = txs.transactions["block_timestamp"].to_numpy()[mixes]
    order = np.argsort(time, kind="stable")
    alone = int((~several).sum())
    return Chain(kind, archive, protocol, txs, mixes[order][several[order]], kind != REAL, alone)


MOST = 30
"""CoinJoins of each list that teach, at most; a quarter as many steer."""
TEACHING_SHARE = 0.8
"""Share of an earlier half that may teach; what is left of it steers."""


class Lesson(NamedTuple):
    """Graphs around early real CoinJoins, and what they hold."""

    teaching: list[CoinJoinGraph]
    steering: list[CoinJoinGraph]
    taught: dict[str, int]  # graphs that teach, by protocol
    too_large: int  # CoinJoins left out because of their surroundings, see `fits`
    addresses: frozenset[str]  # of all graphs that teach


class Split(NamedTuple):
    """The earlier half of a list inside the chain as it was then: ids of those that may teach, and steer."""

    txs: Transactions
    teaching: IntArray
    steering: IntArray


def split_by_time(chain: Chain, later: Iterable[str] = ()) -> Split:
    """Cut a chain after its earlier half.

    later: hashes of transactions that must not be in it, such as later CoinJoins of other lists
    """
    halves, txs = gates.instance("chain", chain, Chain).halves(), chain.txs
    early, late = halves["early"], halves["late"]
    if not len(early):
        return Split(txs, early, early)
    time = txs.transactions["block_timestamp"].to_numpy()
    names = txs.transactions["hash"].to_numpy(dtype=object)
    before = (time <= time[early].max()) & ~np.isin(names, list(later))
    before[late] = False  # a later CoinJoin of the same second
    place = np.asarray(np.cumsum(before) - 1, dtype=np.int64)  # ids in the cut chain
    kept = place[early[before[early]]]
    first = int(np.ceil(TEACHING_SHARE * len(kept)))
    return Split(txs.select(before), kept[:first], kept[first:])


def lesson(chains: Sequence[Chain], config: TrainConfig, most: int = MOST, seed: int = 0) -> Lesson:
    """Graphs around early CoinJoins of all real lists, prepared for an encoder with these settings.

    most: CoinJoins of each list that teach, drawn at random from those that may; a quarter as many steer
    """
    number, seed = gates.whole("most", most, "[1, inf)"), gates.whole("seed", seed, "[0, 2147483647]")
    listed = [chain for chain in gates.items("chains", chains) if chain.kind == REAL]
    later = {name for chain in listed for name in _hashes(chain, "late")}
    graphs: dict[str, list[CoinJoinGraph]] = {"teaching": [], "steering": []}
    taught: Counter[str] = Counter()
    addresses: set[str] = set()
    too_large = 0
    for place, chain in enumerate(listed):
        split = split_by_time(chain, later)
        for part, ids, wanted in (
            ("teaching", split.teaching, number),
            ("steering", split.steering, -(-number // 4)),
        ):
            rng = np.random.default_rng([seed, place, part == "steering"])
            chosen = np.sort(rng.choice(ids, min(wanted, len(ids)), replace=False))
            for mix in _around(split.txs, chosen, seed):
                if not fits(mix):
                    too_large += 1
                    continue
                graphs[part].append(coinjoin_graph(split.txs, mix, config))
                if part == "teaching":
                    taught[chain.protocol] += 1
                    addresses |= set(mix.piece.txs.addresses.tolist())
    return Lesson(graphs["teaching"], graphs["steering"], dict(taught), too_large, frozenset(addresses))


def repelled_by_lists(recipe: Recipe, given: Lesson) -> Run:
    """The encoder of a recipe, trained on its simulated graphs, with repulsion of real CoinJoins."""
    recipe, given = gates.instance("recipe", recipe, Recipe), gates.instance("given", given, Lesson)
    if not given.teaching or not given.steering:
        problem = f"{len(given.teaching)} CoinJoins teach and {len(given.steering)} steer"
        raise DataError("lists", "earlier halves", problem, "give lists with at least four CoinJoins")
    graphs = [training_graph(recipe.source, role, recipe.supervision) for role in TRAINING]
    valid = training_graph(recipe.source, "valid", recipe.supervision)
    run = train(recipe.train, graphs, valid, given.teaching, valid_coinjoins=given.steering, progress=False)
    told = {f"taught.{name}": number for name, number in given.taught.items()} | {"too_large": given.too_large}
    told |= {"coinjoin_training_graphs": len(given.teaching), "coinjoin_validation_graphs": len(given.steering)}
    return replace(run, record=run.record | told)


def seen(given: Lesson, chain: Chain) -> float:
    """% of the distinct inputs of a chain's later CoinJoins that occur in a graph that taught; NaN without any."""
    spent = inputs_of(chain.txs, chain.halves()["late"])
    if not spent:
        return float("nan")
    names = chain.txs.addresses[np.unique(np.concatenate(spent))]
    return float(100 * np.mean([str(name) in given.addresses for name in names]))


def _hashes(chain: Chain, half: str) -> list[str]:
    return [str(name) for name in chain.txs.transactions["hash"].to_numpy()[chain.halves()[half]]]


def _around(txs: Transactions, chosen: IntArray, seed: int) -> Iterator[Mix]:
    return surroundings(txs, chosen, seed, width=WIDTH) if len(chosen) else iter(())
