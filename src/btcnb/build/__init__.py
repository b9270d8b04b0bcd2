"""`btcnb build`: papermill executes the chapters, Jupyter Book renders them; strict about parameters, resumable.

The way through: `chapters` finds them, `parameters` and `presets` settle every value before anything runs,
`fingerprint` says which must be executed, `execute` runs them in worker processes, `assemble` lays out the book's
source with its provenance, and `render` turns it into pages.
"""
