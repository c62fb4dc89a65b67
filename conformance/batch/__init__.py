"""`conformance grade-all`: a whole class, each submission by a `conformance grade` of its own.

`find` lists the submissions, `unpack` opens archives, `grade` runs one and reads what it wrote,
`record` keeps a line of each in `record.jsonl`, `table` writes what the class as a whole looks like
from these lines, `run` holds it together. What one submission does costs the others nothing: it is
graded by another process, and of its results only that line stays in memory.
"""
