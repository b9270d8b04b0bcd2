"""Is a file the block that its name says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from btcnb.data.readers.archives import Member
from btcnb.data.readers.blocks.chain import scan
from btcnb.data.readers.blocks.files import BlockFile
from btcnb.data.readers.blocks.networks import NETWORKS
from btcnb.data.readers.blocks.parts import gather, require_sound


def require_block(path: Path) -> None:
    """Raise `DataError` unless `HEIGHT-HASH.bin` holds a whole block with that hash, its Merkle root and witnesses."""
    file = BlockFile(Member(path.name, path), None)
    heads, _ = scan([file], None, NETWORKS["main"])
    require_sound(gather(heads, [file], np.array([0])))
