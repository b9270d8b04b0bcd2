"""What the answers to the exercises are judged by: one module a chapter, each with a table `CHECKS`.

An answer that follows from the chapter's own variables is judged by a function that recomputes what it must be, or
tests the property that it must have. One that is the same for everybody is kept as a salted digest, entry by entry.
"""
