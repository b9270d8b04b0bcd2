"""Raw blocks: single files, or the files in which a node keeps its chain, parsed by compiled code.

`files` finds and unwraps, `chain` chooses blocks by their headers, `parse` cuts them into columns, `checks` holds them
against their headers (`verify` a whole file), `owners` and `undo` tell whose coins are spent, `links` and `join` make
the tables.
"""

from btcnb.data.readers.blocks.chain import SideBranchWarning
from btcnb.data.readers.blocks.files import is_node_file, looks_like_blocks
from btcnb.data.readers.blocks.join import RewardWarning
from btcnb.data.readers.blocks.read import read_blocks
from btcnb.data.readers.blocks.verify import require_block

__all__ = ["RewardWarning", "SideBranchWarning", "is_node_file", "looks_like_blocks", "read_blocks", "require_block"]
