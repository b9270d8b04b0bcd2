"""btcnb: the code behind an executable book on refining Bitcoin address clusters with graph neural networks.

The folders carry the names of the book's parts: `data` (I), `theory` (II), `learn` and `cluster` (III),
`experiments` (IV) and `paper` (V). `book` builds and decorates the pages.
"""

__version__ = "0.1.0"

from btcnb import compiled

compiled.settle()
