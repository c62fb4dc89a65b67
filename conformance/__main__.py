"""`python -m conformance` is the command `conformance`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Python has put the current folder first, where a submission may lie: nothing more is imported
    # from there before `main` has left it.
    if not sys.flags.safe_path:
        del sys.path[0]

    from conformance.cli import main

    sys.exit(main())
