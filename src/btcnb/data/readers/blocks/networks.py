"""Bitcoin's networks: what marks a block in a node's files, how addresses begin, when the reward halves."""

from __future__ import annotations

from typing import NamedTuple

from embit.networks import NETWORKS as PREFIXES

from btcnb.gates import choice


class Network(NamedTuple):
    name: str
    magic: bytes  # 4 bytes before each block and each undo record
    key_hash: bytes  # Base58Check prefix of P2PKH
    script_hash: bytes  # … of P2SH
    bech32: str  # human-readable part
    halving: int  # blocks between two halvings
    bip34: int  # height from which a coinbase must tell its height


def _network(name: str, magic: str, like: str, halving: int = 210_000, bip34: int = 1) -> Network:
    prefix = PREFIXES[like]
    return Network(name, bytes.fromhex(magic), prefix["p2pkh"], prefix["p2sh"], str(prefix["bech32"]), halving, bip34)


NETWORKS = {
    network.name: network
    for network in (
        _network("main", "f9beb4d9", "main", bip34=227_931),
        _network("testnet3", "0b110907", "test", bip34=21_111),
        _network("testnet4", "1c163f28", "test"),
        _network("signet", "0a03cf40", "signet"),
        _network("regtest", "fabfb5da", "regtest", halving=150, bip34=500),
    )
}
OF_MAGIC = {network.magic: network for network in NETWORKS.values()}


def network_named(name: str) -> Network:
    return NETWORKS[choice("network", name, NETWORKS)]
