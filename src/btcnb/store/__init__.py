"""The store: what is expensive is computed once, and never used when anything that decides it has changed.

    @kept                                   # keep a function's results
    def load_graph(source: Source, role: str) -> AddressGraph: ...

    note_read(path)                         # say that a file's content decides what follows

An entry is valid for one function, one set of arguments (by value), one state of the files of the sub-packages that the
function imports, one set of library versions, and one content of the files that were noted while it ran. Entries are
pickles of this machine's own results: nothing that was downloaded is ever unpickled.
"""

from btcnb.store.kept import StoreWarning, fingerprint, kept, store_folder
from btcnb.store.reads import note_read

__all__ = ["StoreWarning", "fingerprint", "kept", "note_read", "store_folder"]
