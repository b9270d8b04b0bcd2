"""Raw blocks: single files, or the files in which a node keeps its chain.

`files` finds and unwraps them, `chain` chooses blocks by their headers, `parse` cuts them into columns and holds them
against their headers, `owners` tells whose coins are spent, `read` puts all together.
"""

from btcnb.data.readers.blocks.chain import SideBranchWarning
from btcnb.data.readers.blocks.files import is_node_file, looks_like_blocks
from btcnb.data.readers.blocks.read import RewardWarning, read_blocks, require_block

__all__ = ["RewardWarning", "SideBranchWarning", "is_node_file", "looks_like_blocks", "read_blocks", "require_block"]
