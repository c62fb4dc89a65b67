"""Confines itself with Landlock, then becomes another program; a script of the judge's.

`confine.py FOLDER RULES PROGRAM ARGUMENT...`: FOLDER is where landlockpy is installed, RULES is
`{"list": [...], "read": [...], "write": [...]}` in JSON, paths each. What no rule names can be
neither read nor written from here on, nor can processes outside be signalled or looked into; TCP
(and on newer systems UDP) is shut. What the system is too old for is left out.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_a_search() -> Iterator[None]:
    """landlockpy looks for the C library by starting other programs; it is loaded already."""
    search = ctypes.util.find_library
    ctypes.util.find_library = lambda name: None
    try:
        yield
    finally:
        ctypes.util.find_library = search


def version() -> int:
    """The version of Landlock in this system; 0 if there is none."""
    try:
        import landlockpy

        with without_a_search():
            return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def confine(rules: dict[str, list[str]]) -> None:
    """Imposes the rules for good. Raises OSError or landlockpy's errors where that cannot be."""
    from landlockpy import AccessFS, Ruleset, Scope

    listing = AccessFS.READ_DIR
    reading = AccessFS.READ_DIR | AccessFS.READ_FILE | AccessFS.EXECUTE
    devices = AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK
    on_files = AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.EXECUTE | AccessFS.TRUNCATE
    on_files |= AccessFS.IOCTL_DEV
    with Ruleset(scoped=Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET) as ruleset:
        everything = ruleset.handled_fs & ~devices
        for kind, access in (("list", listing), ("read", reading), ("write", everything)):
            for path in rules[kind]:
                allowed = access if os.path.isdir(path) else access & on_files
                if allowed and os.path.exists(path):
                    ruleset.allow_path(path, allowed)
        ruleset.restrict()


def main() -> None:
    """Confine, then execute."""
    library, rules, *command = sys.argv[1:]
    sys.path.append(library)
    try:
        with without_a_search():
            confine(json.loads(rules))
    except OSError as error:
        sys.exit(f"Landlock: {error}")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
