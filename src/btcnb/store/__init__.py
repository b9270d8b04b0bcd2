"""The store: what is expensive is computed once, and never served when anything that decides it has changed.

    @kept                                   # keep a function's results
    def load_graph(source: Source, role: str) -> AddressGraph: ...

    @storable("address-graph")              # let the store keep instances of a class
    @dataclass(frozen=True)
    class AddressGraph: ...

    note_read(path)                         # say that a file's content decides what comes next

An entry is valid for one function, one set of arguments (by value), one state of the source code that the function
reaches, one set of library versions, and one content of the files that were noted while it ran. Entries hold arrays,
Arrow tables and JSON; reading one executes nothing.
"""

from btcnb.store.codec import StorableError, fingerprint, storable
from btcnb.store.entries import StoreWarning, kept, store_folder
from btcnb.store.reads import note_read

__all__ = ["StorableError", "StoreWarning", "fingerprint", "kept", "note_read", "storable", "store_folder"]
