"""Scripts and addresses: published examples, and embit as the oracle for the batch encoder."""

from __future__ import annotations

import numpy as np
import pytest
from embit import bech32
from embit.networks import NETWORKS
from embit.script import Script

from btcnb.data import SCRIPT_TYPES
from btcnb.data.readers.scripts import NETWORKS as OUR_NETWORKS
from btcnb.data.readers.scripts import addresses, script_type

GENERATOR_X = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"

EXAMPLES = {  # script -> (type, mainnet address); BIP 173, BIP 350 and the genesis block's key hash
    "76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac": ("pubkeyhash", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
    "0014751e76e8199196d454941c45d1b3a323f1433bd6": (
        "witness_v0_keyhash",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    ),
    "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262": (
        "witness_v0_scripthash",
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
    ),
    f"5120{GENERATOR_X}": (
        "witness_v1_taproot",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    ),
}


@pytest.mark.parametrize(("script", "expected"), EXAMPLES.items())
def test_published_examples(script, expected):
    found, types = addresses([bytes.fromhex(script)])
    assert (SCRIPT_TYPES[types[0]], found[0]) == expected


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (f"21{'02' + 'ab' * 32}ac", "pubkey"),
        (f"41{'04' + 'ab' * 64}ac", "pubkey"),
        (f"51{'21' + '02' * 33}{'21' + '03' * 33}52ae", "multisig"),
        ("6a0568656c6c6f", "nulldata"),
        ("6a", "nulldata"),
        ("51", "nonstandard"),
        ("", "nonstandard"),
        ("0014abcd", "nonstandard"),
    ],
)
def test_other_scripts_keep_their_hex_except_nulldata(script, kind):
    assert SCRIPT_TYPES[script_type(bytes.fromhex(script))] == kind
    found, _ = addresses([bytes.fromhex(script)])
    assert found[0] == (None if kind == "nulldata" else script)


@pytest.mark.parametrize("network", ["main", "test", "regtest"])
def test_a_witness_version_nobody_uses_yet_has_an_address(network):
    """BIP 350; the script's type stays nonstandard."""
    script = bytes.fromhex(f"5220{GENERATOR_X}")
    mine = {"test": "testnet4"}.get(network, network)
    found, types = addresses([script], OUR_NETWORKS[mine])
    assert (found[0], SCRIPT_TYPES[types[0]]) == (
        bech32.encode(NETWORKS[network]["bech32"], 2, script[2:]),
        "nonstandard",
    )


@pytest.mark.parametrize("network", ["main", "test", "regtest"])
def test_the_batch_encoder_agrees_with_embit(network):
    draw = np.random.default_rng(5)

    def noise(size: int) -> str:
        return draw.bytes(size).hex()

    shapes = [("76a914", 20, "88ac"), ("a914", 20, "87"), ("0014", 20, ""), ("0020", 32, ""), ("5120", 32, "")]
    scripts = [f"{head}{noise(size)}{tail}" for _ in range(40) for head, size, tail in shapes]
    scripts += [f"0014{'00' * 20}", f"0014{'ff' * 20}", f"76a914{'00' * 20}88ac", scripts[0]]
    ours = OUR_NETWORKS[{"test": "testnet4"}.get(network, network)]
    found, _ = addresses([bytes.fromhex(script) for script in scripts], ours)
    assert found.tolist() == [Script(bytes.fromhex(script)).address(NETWORKS[network]) for script in scripts]
