"""`btcnb build`: papermill executes the chapters, Jupyter Book renders them; strict about parameters, resumable.

The way through: `notebooks` finds the chapters, `presets` settles every parameter before anything runs, `fingerprint`
says which chapters must be executed, `execute` runs them in `kernels`, `pages` writes the book's source with its
provenance, and `render` turns it into pages. `printing` and `slides` make files of rendered pages.
"""
