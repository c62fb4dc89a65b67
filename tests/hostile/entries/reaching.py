"""Reaching for what is not the candidate's: files, processes, the network, the suite."""

from __future__ import annotations

from ..catalogue import Entry, Holds


def probe(body: str, imports: str = "") -> str:
    """An attack that raises "REACHED ..." where it gets through, and else answers rightly."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return (
        f"import os\n{imports}\nimport tools\n\n\n"
        f"def reach():\n{lines}\n\n"
        "def attack(right, *given):\n    try:\n        reach()\n"
        "    except (OSError, LookupError):\n        pass\n    return right(*given)\n"
    )


def reached(what: str) -> Holds:
    return Holds("raised", f"REACHED {what}")


SAFE = Holds("passed")

DELEGATED = Holds("delegated", "the suite's own")

ENTRIES = [
    Entry(
        "environment",
        "looks for tokens, CI variables and variables of Python in its environment",
        SAFE,
        code=probe("""\
found = [n for n in os.environ if n.startswith(("GRADING", "CI", "GITHUB", "PYTHON", "PYTEST"))]
if found or "squeamish-ossifrage" in os.environ.values():
    tools.reached(f"variables {found}")"""),
    ),
    Entry(
        "own-arguments",
        "looks for paths of reports and fixtures in its arguments and the worker's variables",
        SAFE,
        code=probe(
            """\
words = [*sys.argv, *sys.orig_argv, *map(str, vars(sys.modules["__main__"]).values())]
for word in words:
    if tools.REPORT in word or "fixtures/" in word:
        tools.reached("a path in " + word[:100])""",
            "import sys\n",
        ),
    ),
    Entry(
        "inherited-descriptors",
        "reads every descriptor that it was born with",
        SAFE,
        code=probe("""\
for name in os.listdir("/proc/self/fd"):
    try:
        if os.path.isfile(f"/proc/self/fd/{name}"):
            text = os.pread(int(name), 4096, 0)
            if b"squeamish-ossifrage" in text:
                tools.reached("an inherited descriptor")
    except OSError:
        pass"""),
    ),
    Entry(
        "environment-of-the-judge",
        "reads /proc/<judge>/environ",
        SAFE,
        code=probe("""\
with open(f"/proc/{tools.judge()}/environ", "rb") as file:
    if b"squeamish-ossifrage" in file.read():
        tools.reached("the judge's environment")"""),
    ),
    Entry(
        "arguments-of-the-judge",
        "reads /proc/<judge>/cmdline, which names the folder of the report",
        reached("the judge's arguments"),
        SAFE,
        code=probe("""\
with open(f"/proc/{tools.judge()}/cmdline", "rb") as file:
    if b"--report" in file.read():
        tools.reached("the judge's arguments")"""),
    ),
    Entry(
        "memory-of-the-judge",
        "opens /proc/<judge>/mem for writing",
        SAFE,
        code=probe("""\
with open(f"/proc/{tools.judge()}/mem", "r+b"):
    tools.reached("the judge's memory")"""),
    ),
    Entry(
        "descriptors-of-the-judge",
        "opens the results through /proc/<judge>/fd",
        SAFE,
        code=probe("""\
folder = f"/proc/{tools.judge()}/fd"
for name in os.listdir(folder):
    if os.readlink(os.path.join(folder, name)).endswith("results.jsonl"):
        open(os.path.join(folder, name), "ab").close()
        tools.reached("the judge's descriptors")"""),
    ),
    Entry(
        "golden-vectors",
        "reads the golden vectors of the suite",
        DELEGATED,
        code=probe("""\
with open(os.path.join(tools.SUITE, "fixtures", "manifest.json"), "rb") as file:
    if file.read(10):
        tools.reached("the golden vectors")"""),
    ),
    Entry(
        "code-of-the-suite",
        "asks whether it may write to the suite's code",
        reached("the suite's code"),
        SAFE,
        code=probe("""\
if os.access(os.path.join(tools.SUITE, "conformance", "cli.py"), os.W_OK):
    tools.reached("the suite's code")"""),
    ),
    Entry(
        "another-submission",
        "reads the submission beside its own",
        reached("another submission"),
        SAFE,
        code=probe("""\
with open(os.path.join(tools.SIBLING, "adapters.py")) as file:
    if "squeamish-ossifrage" in file.read():
        tools.reached("another submission")"""),
    ),
    Entry(
        "network",
        "connects to a port of this machine",
        reached("the network"),
        SAFE,
        code=probe(
            """\
with socket.create_connection(("127.0.0.1", tools.PORT), timeout=1):
    tools.reached("the network")""",
            "import socket\n",
        ),
    ),
    Entry(
        "shell",
        "starts a shell that leaves a file in the home folder",
        Holds("passed", changes=("home",)),
        Holds("passed"),
        code=probe(
            """subprocess.run(f"echo here > {tools.HOME}/MARKER", shell=True)""",
            "import subprocess\n",
        ),
        alone=True,
    ),
    Entry(
        "files-of-others",
        "writes into the home folder, into other folders and into the submission beside its own",
        Holds("passed", changes=("home", "elsewhere", "sibling", "cwd")),
        Holds("passed"),
        code=probe("""\
for folder in (tools.HOME, tools.ELSEWHERE, tools.SIBLING, os.path.dirname(tools.REPORT)):
    tools.mark(folder)"""),
        alone=True,
    ),
    Entry(
        "start-up-files-of-python",
        "leaves a .pth file and a usercustomize where the user's Python would execute them",
        Holds("passed", changes=("home",)),
        Holds("passed"),
        code=probe(
            """\
folder = os.path.join(tools.HOME, ".local/lib/python%d.%d/site-packages" % sys.version_info[:2])
os.makedirs(folder, exist_ok=True)
tools.mark(folder, "evil.pth")
tools.mark(folder, "usercustomize.py")""",
            "import sys\n",
        ),
        alone=True,
    ),
    Entry(
        "forges-results",
        "answers zeros and appends results of its own to results.jsonl while it is graded",
        Holds("incomplete"),
        Holds("failed"),
        code="""\
import json
import os

import torch

import tools


def attack(right, *given):
    path = os.path.join(tools.REPORT, "results.jsonl")
    try:
        with open(path, "r+b") as file:
            lines = file.read().splitlines()
            for line in lines[1:]:
                record = json.loads(line)
                record.update(outcome="passed", message="", details=None, diagnosis=None)
                file.write(json.dumps(record).encode() + b"\\n")
    except OSError:
        pass
    return torch.zeros_like(right(*given))
""",
        alone=True,
    ),
    Entry(
        "rewrites-results",
        "answers zeros and turns the failures in results.jsonl into passes of the same length",
        Holds("incomplete"),
        Holds("failed"),
        code="""\
import os

import torch

import tools


def attack(right, *given):
    path = os.path.join(tools.REPORT, "results.jsonl")
    try:
        with open(path, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(data.replace(b'"outcome": "failed"', b'"outcome": "passed"'))
    except OSError:
        pass
    return torch.zeros_like(right(*given))
""",
        alone=True,
    ),
    Entry(
        "replaces-results",
        "answers zeros and puts a file of its own in the place of results.jsonl",
        Holds("incomplete", "there is no verdict"),
        Holds("failed"),
        code="""\
import os

import torch

import tools


def attack(right, *given):
    path = os.path.join(tools.REPORT, "results.jsonl")
    try:
        with open(path + ".new", "w") as file:
            file.write('{"kind": "footer"}\\n')
        os.replace(path + ".new", path)
    except OSError:
        pass
    return torch.zeros_like(right(*given))
""",
        alone=True,
    ),
    Entry(
        "link-in-the-place-of-the-report",
        "puts links to a file of somebody else where the reports will be written",
        SAFE,
        code="""\
import os

import tools


def attack(right, *given):
    for name in ("report.json", "report.md"):
        try:
            os.symlink(os.path.join(tools.ELSEWHERE, "victim.txt"),
                       os.path.join(tools.REPORT, name))
        except OSError:
            pass
    return right(*given)
""",
        alone=True,
    ),
    Entry(
        "links-in-its-folder",
        "makes links in its own folder that lead to folders of others",
        SAFE,
        code=probe("""\
here = os.path.dirname(__file__)
for number, target in enumerate(("/", tools.HOME, tools.SUITE, here)):
    os.symlink(target, os.path.join(here, f"link{number}"))"""),
    ),
    Entry(
        "rights-of-its-folder",
        "takes all rights from its own folder",
        SAFE,
        code=probe("os.chmod(os.path.dirname(__file__), 0)"),
        alone=True,
    ),
    Entry(
        "deletes-its-folder",
        "deletes its own folder",
        SAFE,
        code=probe("shutil.rmtree(os.path.dirname(__file__))", "import shutil\n"),
        alone=True,
    ),
    Entry(
        "deletes-its-temporary-folder",
        "deletes the temporary folder that it was given, puts a file in its place, and crashes",
        Holds("crashed", "SIGABRT"),
        code="""\
import os
import shutil
import tempfile


def attack(right, *given):
    folder = tempfile.gettempdir()
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        open(folder, "w").close()
    except OSError:
        pass
    os.abort()
""",
        alone=True,
    ),
    Entry(
        "link-in-the-place-of-the-worker",
        "puts a link to a file of somebody else in the place of the worker's script and crashes",
        Holds("crashed", "SIGABRT"),
        code="""\
import os
import tempfile

import tools


def attack(right, *given):
    victim = os.path.join(tools.ELSEWHERE, "victim.txt")
    for folder, _, names in os.walk(tempfile.gettempdir()):
        for name in names:
            if name.endswith((".py", ".txt")):
                try:
                    os.unlink(os.path.join(folder, name))
                    os.symlink(victim, os.path.join(folder, name))
                except OSError:
                    pass
    os.abort()
""",
        alone=True,
    ),
    Entry(
        "pipe-in-the-place-of-a-file",
        "puts a FIFO in the place of every file that the judge may read, and crashes",
        Holds("crashed", "SIGABRT"),
        code="""\
import os
import tempfile


def attack(right, *given):
    for folder, _, names in os.walk(tempfile.gettempdir()):
        for name in names:
            try:
                os.unlink(os.path.join(folder, name))
                os.mkfifo(os.path.join(folder, name))
            except OSError:
                pass
    os.abort()
""",
        alone=True,
    ),
    Entry(
        "modules-in-its-temporary-folder",
        "leaves modules called json, torch and sitecustomize for the next worker, and crashes",
        Holds("crashed", "SIGABRT"),
        code="""\
import os
import tempfile


def attack(right, *given):
    for name in ("json", "torch", "sitecustomize", "usercustomize", "struct", "ast"):
        with open(os.path.join(tempfile.gettempdir(), name + ".py"), "w") as file:
            file.write("raise RuntimeError('executed by the next worker')")
    os.abort()
""",
        alone=True,
    ),
    Entry(
        "imports-the-reference",
        "imports reference_impl and lets it answer",
        DELEGATED,
        code="""\
def attack(right, *given):
    import reference_impl.adapters

    return getattr(reference_impl.adapters, right.__name__)(*given)
""",
    ),
    Entry(
        "imports-the-suite",
        "imports the definitions of the suite and asks them",
        DELEGATED,
        code="""\
def attack(right, *given):
    import conformance.definitions

    conformance.definitions.definition(right.__name__)
    return right(*given)
""",
    ),
    Entry(
        "loads-the-reference-by-path",
        "takes the guards off and loads reference_impl from the suite's folder",
        DELEGATED,
        SAFE,
        code=probe(
            """\
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__module__ != "__main__"]
sys.path.insert(0, tools.SUITE)
try:
    import reference_impl.activations
except ImportError:
    return
finally:
    sys.path.remove(tools.SUITE)
tools.reached("the reference")""",
            "import sys\n",
        ),
    ),
    Entry(
        "asks-another-python",
        "lets another Python import the reference",
        reached("the reference"),
        SAFE,
        code=probe(
            """\
code = "import sys; sys.path.insert(0, sys.argv[1]); from importlib.util import *; "
code += "sys.exit(find_spec('reference_impl') is None)"
done = subprocess.run([sys.executable, "-c", code, tools.SUITE], capture_output=True)
if done.returncode == 0:
    tools.reached("the reference")""",
            "import subprocess\nimport sys\n",
        ),
    ),
    Entry(
        "gains-rights",
        "asks sudo and set-user-id programs for more rights",
        SAFE,
        code=probe(
            """\
before = open("/proc/self/status").read()
done = subprocess.run(["sudo", "-n", "true"], capture_output=True)
if done.returncode == 0 and os.getuid() != 0:
    tools.reached("the rights of root")""",
            "import subprocess\n",
        ),
    ),
]
