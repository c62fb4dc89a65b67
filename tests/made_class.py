"""Makes a class of submissions, the same ones for the same seed.

Correct ones are whole: a copy of the reference under another name in which every component that has
accepted variants (`variants/`) is one of them. A faulty one is a copy with one fault of `faulty/`,
a hostile one a copy with one attack of `hostile/`; the others are what people hand in by mistake.
Half of them are archives. Nothing in a submission depends on the suite's own folders.
"""

from __future__ import annotations

import io
import random
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import corpus
from hostile.catalogue import CODES, WITNESSES, Arrangement, adapters, module_name
from hostile.catalogue import Entry as Attack
from hostile.catalogue import load as attacks
from hostile.world import TOOLS

from conformance.adapters import COURSE_FUNCTIONS

ROOT = Path(__file__).resolve().parents[1]

CORRECT, FAULTY, HOSTILE, BROKEN, EMPTY = "correct", "faulty", "hostile", "broken", "empty or junk"

SHARES = {CORRECT: 40, FAULTY: 30, HOSTILE: 20, BROKEN: 5, EMPTY: 5}
"""Of a hundred."""

ATTACKS = (
    *("exit-with-success", "kills-the-judge", "prints-passes", "files-of-others"),
    *("replaces-the-checks-of-the-worker", "settings-of-pytest", "keeps-answers-by-shape"),
    *("leaves-the-family", "rewrites-results", "adapters-of-another", "kills-itself"),
    *("ends-the-judge", "forges-an-answer", "forges-success-without-values", "start-up-files"),
    *("modules-that-shadow", "equal-to-everything", "patches-comparisons", "golden-vectors"),
    *("ten-gigabytes",),
)
"""Hostile submissions, the first ones first."""

PACKAGES = ("mymodel", "basics", "transformer", "llm", "hw1", "my_lm")


@dataclass(frozen=True)
class Ending:
    """How a submission may end: its verdict, and whose failure it is when there is none."""

    verdict: str
    failure: str = ""


PASSES, FAILS = Ending("conforming"), Ending("non-conforming")
REFUSED, UNKNOWN = Ending("error", "candidate"), Ending("error", "infrastructure")


@dataclass(frozen=True)
class Made:
    """One submission: its name, what it is, and how it has to end."""

    name: str
    kind: str
    what: str
    endings: frozenset[Ending]


Files = dict[str, str | bytes]


def make_class(
    folder: Path, count: int, seed: int, world: Mapping[str, str], mode: str
) -> list[Made]:
    """Write a class; `world` are the values of the placeholders of attacks.

    `mode` says whether they will be in a sandbox: some attacks end otherwise there.
    """
    drawn = random.Random(seed)
    plans = list(_plans(_shares(count), drawn, mode))
    drawn.shuffle(plans)
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, what, endings, files) in enumerate(plans):
        name = f"s{number + 1:03}"
        filled = {n: _filled(t, world) for n, t in files.items()}
        _write(folder, name, filled, drawn.random(), kind)
        made.append(Made(name, kind, what, frozenset(endings)))
    return made


def _shares(count: int) -> dict[str, int]:
    """How many of each kind; at least one."""
    shares = {kind: max(1, round(count * share / 100)) for kind, share in SHARES.items()}
    shares[CORRECT] += count - sum(shares.values())
    if shares[CORRECT] < 1:
        raise SystemExit(f"a class of {count} has no room for every kind; make it larger")
    return shares


Plan = tuple[str, str, Sequence[Ending], Files]


def _plans(shares: Mapping[str, int], drawn: random.Random, mode: str) -> Iterator[Plan]:
    for number in range(shares[CORRECT]):
        what, files = _correct(number)
        yield CORRECT, what, [PASSES], files
    for module, fault in _faults(shares[FAULTY], drawn):
        yield FAULTY, fault.id, [FAILS], _with_entries("faulty", {fault.component: (module, fault)})
    for attack in _attacks(shares[HOSTILE]):
        yield HOSTILE, attack.name, _endings(attack, mode), _attacking(attack)
    for kind, makers in ((BROKEN, _broken()), (EMPTY, _empty())):
        for number in range(shares[kind]):
            what, endings, files = makers[number % len(makers)]
            yield kind, what, endings, files


# -- right and wrong -----------------------------------------------------------------------------


def _reference(package: str) -> Files:
    """The reference under another name, its adapter functions in the module `functions`."""
    files: Files = {
        f"{package}/{path.name}": path.read_text("utf-8")
        for path in sorted((ROOT / "reference_impl").glob("*.py"))
    }
    files[f"{package}/functions.py"] = files.pop(f"{package}/adapters.py")
    return files


def _own(folder: str) -> Files:
    """A corpus with what it needs, below `lib`."""
    paths = [ROOT / "tests" / f"{name}.py" for name in ("adapting", "parts", "witnesses")]
    paths += sorted((ROOT / "tests" / folder).glob("*.py"))
    files: Files = {
        f"lib/own/{path.relative_to(ROOT / 'tests').as_posix()}": path.read_text("utf-8")
        for path in paths
    }
    if folder == "faulty":  # it reads the words on its faults beside it
        for path in sorted((ROOT / "conformance" / "components").glob("*/faults.toml")):
            name = path.relative_to(ROOT).as_posix()
            files[f"lib/{name}"] = path.read_text("utf-8")
    return files


@cache
def _corpus(folder: str) -> dict[str, list[tuple[str, corpus.Entry]]]:
    """Component -> its entries, each with the module in which it is."""
    found: dict[str, list[tuple[str, corpus.Entry]]] = {name: [] for name in COURSE_FUNCTIONS}
    names = sorted(path.stem for path in (ROOT / "tests" / folder).glob("*.py"))
    for name in names:
        if name in corpus.NOT_ENTRIES | {"nulls"}:
            continue
        for entry in corpus.load(folder, name):
            if entry.component in found:
                found[entry.component].append((name, entry))
    return found


def _correct(number: int) -> tuple[str, Files]:
    """The reference itself, then copies in which each component is its next accepted variant."""
    package = PACKAGES[number % len(PACKAGES)]
    if number == 0:
        text = f"from {package}.functions import *\n"
        return "reference", {**_reference(package), "adapters.py": text}
    chosen = {}
    for component, entries in _corpus("variants").items():
        right = [pair for pair in entries if pair[1].level != "open"]
        if right:
            chosen[component] = right[(number - 1) % len(right)]
    ids = ", ".join(entry.id for _, entry in chosen.values())
    return f"variants {ids}", _with_entries("variants", chosen, package)


def _with_entries(
    folder: str, chosen: Mapping[str, tuple[str, corpus.Entry]], package: str = "mymodel"
) -> Files:
    """The reference with entries of a corpus in the place of its own functions."""
    lines = ["import importlib", "import sys", "from pathlib import Path", ""]
    lines += [f"from {package}.functions import *", ""]
    lines += ['sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))', ""]
    for component, (module, entry) in chosen.items():
        function = COURSE_FUNCTIONS[component]
        lines += [f'_found = importlib.import_module("own.{folder}.{module}").ENTRIES']
        lines += [f'{function} = next(e.function for e in _found if e.id == "{entry.id}")']
    return {**_reference(package), **_own(folder), "adapters.py": "\n".join(lines) + "\n"}


def _faults(count: int, drawn: random.Random) -> Iterator[tuple[str, corpus.Entry]]:
    """Faults against a MUST, of each component in turn."""
    lists = []
    for entries in _corpus("faulty").values():
        serious = [pair for pair in entries if pair[1].level == "MUST"]
        drawn.shuffle(serious)
        lists.append(serious)
    for number in range(count):
        entries = lists[number % len(lists)]
        yield entries[number // len(lists) % len(entries)]


# -- hostile -------------------------------------------------------------------------------------


def _attacks(count: int) -> Iterator[Attack]:
    known = {attack.name: attack for attack in attacks()}
    for number in range(count):
        yield known[ATTACKS[number % len(ATTACKS)]]


def _endings(attack: Attack, mode: str) -> list[Ending]:
    found = []
    for ending in attack.holds(mode).endings:
        if ending == "passed":
            found.append(PASSES)
        elif ending in ("incomplete", "killed"):
            found.append(UNKNOWN)
        else:
            found.append(REFUSED if ending in CODES else FAILS)
    return found


def _attacking(attack: Attack) -> Files:
    """A right submission with one attack in it, on SiLU."""
    arrangement = Arrangement((attack,))
    assert not set(arrangement.components.values()) & set(WITNESSES)
    files = _reference("mymodel")
    files["honest.py"] = "from mymodel.functions import *\n"
    files["tools.py"] = TOOLS
    files["adapters.py"] = adapters(arrangement)
    if attack.code:
        files[f"{module_name(attack)}.py"] = attack.code
    return {**files, **attack.files}


# -- handed in by mistake ------------------------------------------------------------------------

Case = tuple[str, Sequence[Ending], Files]


def _broken() -> list[Case]:
    right = _reference("mymodel")
    start = "from mymodel.functions import *\n"
    missing = f"import nosuchthing\n{start}\n\ndef run_silu(x):\n    return nosuchthing.silu(x)\n"
    absent = "TABLE = table_of_angles(64)\n"
    unfinished = "\n\ndef run_rope(*given, **named):\n    raise NotImplementedError\n"
    return [
        ("syntax error", [REFUSED], {**right, "adapters.py": start + "def run_silu(:\n"}),
        ("missing package", [FAILS], {**right, "adapters.py": missing}),
        ("wrong names", [REFUSED], {"adapters.py": "def activation(x):\n    return x\n"}),
        ("one component not done", [FAILS], {**right, "adapters.py": start + unfinished}),
        ("name that is not there", [REFUSED], {**right, "adapters.py": start + absent}),
    ]


def _empty() -> list[Case]:
    return [
        ("empty folder", [REFUSED], {}),
        ("no archive", [REFUSED], {"": b"this is no archive\n"}),
        ("archive that leads out", [REFUSED], {"../../escaped.py": b"x = 1\n"}),
        ("only a text", [REFUSED], {"README.md": "My homework, see attachment.\n"}),
        ("empty archive", [REFUSED], {"": b"PK\5\6" + bytes(18)}),
    ]


# -- on the disk ---------------------------------------------------------------------------------


def _filled(text: str | bytes, world: Mapping[str, str]) -> bytes:
    if isinstance(text, bytes):
        return text
    for placeholder, value in world.items():
        text = text.replace(placeholder, value)
    return text.encode("utf-8")


def _write(folder: Path, name: str, files: Mapping[str, bytes], luck: float, kind: str) -> None:
    """As a folder, a zip or a tar; some with a folder around everything."""
    if "" in files:
        (folder / f"{name}.zip").write_bytes(files[""])
    elif kind == EMPTY and any(".." in part for part in files):
        _zip(folder / f"{name}.zip", files)
    elif luck < 0.5 or not files:
        for path, content in files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_bytes(content)
        (folder / name).mkdir(exist_ok=True)
    elif luck < 0.8:
        inside = "homework/" if luck < 0.65 else ""
        _zip(folder / f"{name}.zip", {inside + path: text for path, text in files.items()})
    else:
        _tar(folder / f"{name}.tar.gz", files)


def _zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _tar(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def copy_of_first(folder: Path, other: Path, count: int) -> None:
    """The first submissions of a class as a class of its own."""
    other.mkdir(parents=True)
    for path in sorted(folder.iterdir())[:count]:
        if path.is_dir():
            shutil.copytree(path, other / path.name, symlinks=True)
        else:
            shutil.copy2(path, other / path.name)
