"""`btcnb build`: papermill executes the chapters, Jupyter Book renders them; strict about parameters, resumable.

The way through: `chapters` finds them, `presets` settles every parameter before anything runs, `fingerprint` says which
must be executed (it asks the store what code a chapter reaches and what it has read), `execute` runs them in worker
processes, `assemble` lays out the book's source with its provenance, and `render` turns it into pages.
"""
