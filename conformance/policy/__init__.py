"""The rules of a course: what a submission may not use, seen while it runs and by reading it.

    rules      a policy: which names are allowed and forbidden, and what follows from using them
    names      one name for everything that goes by several, and how a chain of calls is judged
    watch      asks for some calls to be observed, and keeps what was used in them
    scopes     what the names in one source file stand for
    reading    every use in the source files
    reach      which component can reach which code
    record     all of this together, as one record of the run

What is observed inside the candidate's process is written in `candidate/worker.py`; it knows no
rules and only reports what is called from where.
"""

from conformance.policy.rules import Effect, Policy

__all__ = ["Effect", "Policy"]
