"""How a submission is found, from its files alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.candidate import sources
from conformance.candidate.resolve import KNOWN, Submission, resolve
from conformance.candidate.worker import CLASS_NAMES
from conformance.errors import LoadError, UsageError

Write = Callable[[Mapping[str, str]], Path]

SILU = "def run_silu(in_features): ...\n"
BOTH = SILU + "def run_softmax(in_features, dim): ...\n"
#: fails the test if anything executes it
TRAP = "raise SystemExit('executed')\n"


def find(folder: Path, value: str = ".") -> Submission:
    return resolve(value, cwd=folder)


def relative(submission: Submission) -> str:
    assert submission.adapters is not None
    return submission.adapters.relative_to(submission.root).as_posix()


# -- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "chosen", "module"),
    [
        (["adapters.py", "tests/adapters.py"], "adapters.py", "adapters"),
        (["tests/adapters.py", "pkg/adapters.py"], "tests/adapters.py", "tests.adapters"),
        (["tests/__init__.py", "tests/adapters.py"], "tests/adapters.py", "tests.adapters"),
        (["pkg/adapters.py", "src/pkg/adapters.py"], "pkg/adapters.py", "adapters"),
        (["pkg/__init__.py", "pkg/adapters.py"], "pkg/adapters.py", "pkg.adapters"),
        (
            ["src/pkg/__init__.py", "src/pkg/adapters.py", "a/b/adapters.py"],
            "src/pkg/adapters.py",
            "pkg.adapters",
        ),
        (["hw/one/tests/adapters.py"], "hw/one/tests/adapters.py", "tests.adapters"),
        ([".venv/pkg/adapters.py", "z/y/x/w/adapters.py"], "z/y/x/w/adapters.py", "adapters"),
    ],
)
def test_order_of_places(write: Write, files: list[str], chosen: str, module: str) -> None:
    folder = write({name: "" if name.endswith("__init__.py") else TRAP + SILU for name in files})
    submission = find(folder)
    assert relative(submission) == chosen
    assert submission.module == module
    assert submission.name == "submission"
    assert chosen in submission.how


def test_file_without_adapter_functions_is_passed_over(write: Write) -> None:
    folder = write({"adapters.py": "x = 1", "tests/adapters.py": SILU})
    assert relative(find(folder)) == "tests/adapters.py"


def test_of_several_the_one_with_most_functions(write: Write) -> None:
    folder = write(
        {
            "assignment1/tests/adapters.py": BOTH,
            "assignment1/pyproject.toml": "[project]\nname='one'\nversion='3.1'",
            "assignment2/tests/adapters.py": "def run_flash(): ...",
            "assignment0/tests/adapters.py": SILU,
        }
    )
    submission = find(folder)
    assert relative(submission) == "assignment1/tests/adapters.py"
    assert submission.ignored == ("assignment0/tests/adapters.py",)
    assert submission.search_path[0] == folder / "assignment1"
    assert submission.workdir == folder / "assignment1"
    assert ("one", "3.1") in submission.distributions


def test_imported_functions_count(write: Write) -> None:
    folder = write({"adapters.py": "from pkg.impl import run_silu, run_softmax"})
    assert relative(find(folder)) == "adapters.py"
    folder = write({"adapters.py": "from pkg.impl import *"})
    assert relative(find(folder)) == "adapters.py"


def test_config_says_where(write: Write) -> None:
    folder = write(
        {
            "conformance.toml": """
                adapters = "odd/place/mine.py"
                [modules]
                RMSNorm = "pkg.norm:MyNorm"
                """,
            "odd/place/mine.py": SILU,
            "adapters.py": BOTH,
        }
    )
    submission = find(folder)
    assert relative(submission) == "odd/place/mine.py"
    assert submission.modules == {"RMSNorm": "pkg.norm:MyNorm"}
    assert "conformance.toml" in submission.how


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("adapters = 'none.py'", "no such file"),
        ("adapters = '../outside.py'", "leads out"),
        ("adapters = 3", "path of a Python file"),
        ("[modules]\nRMSNorm = 'pkg.norm'", "modules must be a table"),
        ("modules = 'x'", "modules must be a table"),
        ("adapters = ", "not valid TOML"),
    ],
)
def test_config_that_is_wrong(write: Write, text: str, words: str) -> None:
    folder = write({"conformance.toml": text, "adapters.py": SILU})
    (folder.parent / "outside.py").write_text(SILU)
    with pytest.raises(LoadError, match=words):
        find(folder)


def test_config_says_where_things_are_and_nothing_else(write: Write) -> None:
    text = "timeout = 3\n[grade]\ncomponent = ['silu']\n[modules]\nRMSNorm = 'pkg.norm:Norm'\n"
    submission = find(write({"conformance.toml": text, "adapters.py": SILU}))
    assert submission.modules == {"RMSNorm": "pkg.norm:Norm"}
    (notice,) = submission.notices
    assert notice.startswith("ignored in its conformance.toml: grade, timeout (")


def test_a_link_to_the_suite_does_not_make_a_submission_a_part_of_it(write: Write) -> None:
    """Nothing of the suite is hidden from what is its own."""
    import reference_impl

    folder = write({"README": ""})
    (folder / "adapters.py").symlink_to(Path(reference_impl.__file__).with_name("adapters.py"))
    assert not find(folder).ours
    assert find("reference_impl").ours


def test_declared_components_are_read_not_executed(write: Write) -> None:
    folder = write({"adapters.py": TRAP + 'COMPONENTS = ["silu", "softmax"]\n' + SILU})
    assert find(folder).declared == ("silu", "softmax")
    folder = write({"adapters.py": "COMPONENTS = make()\n" + SILU})
    assert find(folder).declared is None
    folder = write({"adapters.py": SILU})
    assert find(folder).declared is None


def test_search_path_and_names(write: Write) -> None:
    folder = write(
        {
            "pyproject.toml": "[project]\nname = 'my-basics'\nversion = '1.2.3'",
            "src/basics/__init__.py": "",
            "utils/helpers.py": "",
            "tests/adapters.py": SILU,
        }
    )
    submission = find(folder)
    assert submission.search_path == (folder, folder / "src", folder / "tests")
    assert submission.distributions == (
        ("my-basics", "1.2.3"),
        ("utils", "1.2.3"),
        ("basics", "1.2.3"),
    )


def test_folder_that_is_itself_a_package(write: Write) -> None:
    folder = write(
        {
            "pkg/__init__.py": "",
            "pkg/adapters.py": "from .model import x\n" + SILU,
            "pkg/types.py": "",
        }
    )
    submission = find(folder, "pkg")
    assert submission.module == "pkg.adapters"
    # the package's own folder would hide the standard module `types`
    assert submission.search_path == (folder,)
    assert submission.name == "pkg"


def test_relative_import_beyond_the_tests(write: Write) -> None:
    folder = write({"tests/adapters.py": "from ..pkg.model import Linear\n" + SILU})
    submission = find(folder)
    assert submission.module == "submission.tests.adapters"
    assert folder in submission.search_path


def test_project_with_a_stray_init(write: Write) -> None:
    folder = write(
        {
            "__init__.py": "",
            "pyproject.toml": "",
            "tests/__init__.py": "",
            "tests/adapters.py": SILU,
        }
    )
    submission = find(folder)
    assert submission.module == "tests.adapters"
    assert submission.search_path[0] == folder


# -- classes without adapters --------------------------------------------------------------------


def test_classes_are_found_by_name(write: Write) -> None:
    folder = write(
        {
            "src/lm/__init__.py": TRAP,
            "src/lm/model.py": "class Linear: ...\nclass RMSNorm: ...\ndef softmax(x, dim): ...",
            "src/lm/old.py": "class Linear: ...",
            "src/lm/attention.py": "class MultiHeadSelfAttention: ...",
            "tests/test_linear.py": "class Embedding: ...",
        }
    )
    submission = find(folder)
    assert submission.adapters is None
    assert submission.found == {
        "Linear": "lm.model:Linear",
        "RMSNorm": "lm.model:RMSNorm",
        "softmax": "lm.model:softmax",
        "MultiheadSelfAttention": "lm.attention:MultiHeadSelfAttention",
    }
    assert submission.ignored == ("Linear in src/lm/old.py",)
    assert "by name" in submission.how


def test_classes_behind_adapters_are_found_through_imports(write: Write) -> None:
    folder = write(
        {
            "tests/adapters.py": """
                def run_linear():
                    from basics.model import Linear
                def run_rmsnorm():
                    from basics import norm
                """,
            "basics/__init__.py": "",
            "basics/model.py": "from .parts import x\nclass Linear: ...",
            "basics/parts.py": "class SwiGLU: ...",
            "basics/norm.py": "class RMSNorm: ...",
            "basics/unused.py": "class Embedding: ...",
        }
    )
    assert find(folder).found == {
        "Linear": "basics.model:Linear",
        "RMSNorm": "basics.norm:RMSNorm",
        "SwiGLU": "basics.parts:SwiGLU",
    }


def test_worker_and_judge_know_the_same_classes() -> None:
    assert CLASS_NAMES == sources.CLASS_NAMES


# -- files ---------------------------------------------------------------------------------------


def test_path_to_an_adapters_file(write: Write) -> None:
    folder = write({"pyproject.toml": "", "tests/adapters.py": SILU, "pkg/__init__.py": ""})
    submission = find(folder, "tests/adapters.py")
    assert submission.root == folder
    assert submission.module == "tests.adapters"
    assert submission.search_path[0] == folder
    assert resolve(str(folder / "tests" / "adapters.py"), cwd=Path("/")).root == folder


def test_path_to_a_lone_file(write: Write) -> None:
    folder = write({"all_in_one.py": SILU})
    submission = find(folder, "all_in_one.py")
    assert submission.module == "all_in_one"
    assert submission.root == folder


def test_file_that_this_python_cannot_parse_is_left_to_the_worker(write: Write) -> None:
    folder = write({"tests/adapters.py": "type X = int\n" + SILU + "x = f'{'a'}'\nsyntax error"})
    assert relative(find(folder)) == "tests/adapters.py"


# -- names ---------------------------------------------------------------------------------------


def test_own_package() -> None:
    submission = resolve("reference_impl", cwd=Path("/"))
    assert submission.ours
    assert submission.module == "reference_impl.adapters"
    assert resolve(str(submission.root), cwd=Path("/")).ours


@pytest.mark.parametrize("name", KNOWN)
def test_known_libraries(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    submission = resolve(name, cwd=tmp_path)
    assert submission.ours
    assert submission.adapters is not None
    assert submission.search_path == ()


def test_importable_packages(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(
        {
            "with_adapters/__init__.py": TRAP,
            "with_adapters/adapters.py": SILU,
            "outer/__init__.py": TRAP,
            "outer/inner/__init__.py": TRAP,
            "outer/inner/model.py": "class Linear: ...",
            "single_module.py": SILU,
        }
    )
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    elsewhere = Path("/")
    assert resolve("with_adapters", cwd=elsewhere).module == "with_adapters.adapters"
    inner = resolve("outer.inner", cwd=elsewhere)
    assert inner.found == {"Linear": "outer.inner.model:Linear"}
    assert inner.name == "outer.inner"
    assert resolve("single_module", cwd=elsewhere).module == "single_module"
    assert not {"with_adapters", "outer", "single_module"} & set(sys.modules)


def test_importable_package_whose_adapters_are_in_its_checkout(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write({"pyproject.toml": "", "src/mypkg/__init__.py": "", "tests/adapters.py": SILU})
    monkeypatch.setattr(sys, "path", [str(folder / "src"), *sys.path])
    submission = resolve("mypkg", cwd=Path("/"))
    assert relative(submission) == "tests/adapters.py"
    assert submission.name == "mypkg"


# -- what is wrong, in one sentence each ---------------------------------------------------------


def test_nothing_there(write: Write) -> None:
    folder = write({"assignment/adapters.py": SILU})
    with pytest.raises(UsageError, match=r"no such file or folder; did you mean .*assignment"):
        find(folder, "./asignment")
    with pytest.raises(UsageError, match="known names"):
        find(folder, "no_such_package")
    with pytest.raises(UsageError, match="needs a value"):
        find(folder, " ")


@pytest.mark.parametrize(
    ("files", "value", "kind", "words"),
    [
        ({}, ".", LoadError, "is empty"),
        ({"readme.md": "hi"}, ".", LoadError, "conformance init"),
        ({"adapters.py": "x = 1"}, ".", LoadError, r"adapters.py has no functions such as"),
        ({"notes.txt": "hi"}, "notes.txt", UsageError, "not a Python file"),
        ({"work.ipynb": "{}"}, "work.ipynb", UsageError, "notebook"),
        ({"work.zip": ""}, "work.zip", UsageError, "unpack"),
    ],
)
def test_messages(
    write: Write, files: dict[str, str], value: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        find(write(files), value)


def test_unreadable_project_file_does_no_harm(write: Write) -> None:
    folder = write({"adapters.py": SILU, "pyproject.toml": "this is = = not toml"})
    assert find(folder).distributions == ()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.setuptools.packages.find]\nwhere = ['lib', '../..']",
        "tool = 3",
        "[tool]\nsetuptools = 3",
        "project = []",
        "[project]\nname = 3\nversion = []",
    ],
)
def test_odd_project_files(write: Write, text: str) -> None:
    folder = write({"adapters.py": SILU, "pyproject.toml": text, "lib/pkg/__init__.py": ""})
    submission: Any = find(folder)
    assert ("lib" in text) == (folder / "lib" in submission.search_path)
    assert all(p.is_relative_to(folder) for p in submission.search_path)
