"""What real submissions do while they are imported, and how it is told when they cannot be."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.candidate.inprocess import InProcess
from conformance.candidate.limits import Limits
from conformance.candidate.messages import Call, ModuleCall, Outcome
from conformance.candidate.process import Worker
from conformance.candidate.resolve import resolve
from conformance.errors import LoadError, UsageError

Write = Callable[[Mapping[str, str]], Path]

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)

#: everything that submissions do and that has to work, in one
SUBMISSION = {
    "pyproject.toml": "[project]\nname = 'course-basics'\nversion = '1.0.6'",
    "data/scale.txt": "2.0",
    "tests/common.py": "FACTOR = 3.0",
    "tests/conftest.py": "raise SystemExit('a conftest was executed')",
    "conftest.py": "raise SystemExit('a conftest was executed')",
    "sitecustomize.py": "raise SystemExit('sitecustomize was executed')",
    "tests/adapters.py": """
        from __future__ import annotations
        import importlib, logging, os
        from .common import FACTOR
        from tests.common import FACTOR as AGAIN
        import missing_typing
        from missing_typing import Float, checked
        from missing_typing.deep.er import Thing
        import torch
        from conformance import scale, __version__
        from utils.helpers import shift
        digits = importlib.import_module("utils.01_digits")

        logging.basicConfig(level=logging.INFO)
        logging.info("logged at import")
        print("printed at import")
        RELATIVE = float(open("data/scale.txt").read())

        def run_all(x: Float[torch.Tensor, "..."] | None) -> Float[torch.Tensor, "..."]:
            assert RELATIVE == 2.0 and AGAIN == FACTOR == 3.0
            assert __version__ == "1.0.6"
            assert digits.VALUE == 7
            with open("data/scale.txt") as file:
                assert float(file.read()) == 2.0
            os.chdir("/")
            return shift(scale(x)) * FACTOR

        @checked(strict=True)
        def run_decorated(x):
            return x * 1

        def run_uses_missing(x):
            return missing_typing.compute(x)

        class Config(missing_typing.Base, frozen=True):
            width: int = 3

        def run_subclass(x):
            return x * Config().width

        def run_imports_missing(x):
            from utils.needs import Tool
            return Tool.plain(x)

        def run_case(x):
            from utils import Helpers
            import utils.Helpers
            return x

        def run_linear(d_in, d_out, weights, in_features):
            from conformance.lazy import Linear
            return in_features @ weights.T
        """,
    "utils/helpers.py": "def shift(x):\n    return x + 1",
    "utils/01_digits.py": "VALUE = 7",
    "utils/needs.py": """
        import missing_tool
        from missing_typing import jit
        class Tool(missing_tool.Base):
            @staticmethod
            def plain(x):
                return x * 4
        """,
    "conformance/__init__.py": """
        import importlib.metadata
        from pathlib import Path
        __version__ = importlib.metadata.version("course-basics")
        assert importlib.metadata.version("conformance") == __version__
        FACTOR = float((Path(__file__).parent / "factor.txt").read_text())
        def scale(x):
            return x * FACTOR
        """,
    "conformance/factor.txt": "10",
    "conformance/lazy.py": """
        import torch
        class Linear(torch.nn.Module):
            def __init__(self, in_features, out_features, device=None, dtype=None):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(out_features, in_features))
            def forward(self, x):
                return x @ self.weight.T
        """,
}


@pytest.fixture(scope="module")
def worker(write_module: Write) -> Iterator[Worker]:
    folder = write_module(SUBMISSION)
    with Worker(resolve(str(folder), cwd=Path("/"))) as worker:
        yield worker
    # nothing of ours is left in the submission's folder
    assert not list(folder.rglob("__pycache__"))


def ask(worker: Any, name: str) -> Any:
    return worker.call(Call(name, {"x": X}))


def test_everything_that_submissions_do(worker: Worker) -> None:
    description = worker.describe()
    assert "printed at import" in description.printed
    assert "logged at import" in description.printed
    for _ in range(2):
        reply = ask(worker, "run_all")
        assert reply.outcome is Outcome.PASSED, reply.message + reply.traceback
        np.testing.assert_allclose(reply.outputs[0], (X * 10 + 1) * 3, rtol=1e-6)


def test_missing_packages_are_named(worker: Worker) -> None:
    assert "stood in for the missing package missing_typing" in worker.describe().notices


@pytest.mark.parametrize("name", ["run_decorated", "run_uses_missing", "run_subclass"])
def test_only_what_needs_a_missing_package_suffers(worker: Worker, name: str) -> None:
    reply = ask(worker, name)
    assert reply.outcome is Outcome.RAISED
    assert reply.message == (
        "needs the package 'missing_typing', which is not installed where the candidate runs"
    )


def test_missing_package_that_shows_only_in_a_call(worker: Worker) -> None:
    reply = ask(worker, "run_imports_missing")
    assert reply.outcome is Outcome.PASSED, reply.message
    np.testing.assert_allclose(reply.outputs[0], 4 * X)


def test_upper_and_lower_case(worker: Worker) -> None:
    reply = ask(worker, "run_case")
    assert reply.outcome is Outcome.RAISED
    if "Helpers" in reply.message:
        assert "called 'helpers.py'" in reply.message or "cannot import name" in reply.message


def test_class_behind_an_import_in_a_function(worker: Worker) -> None:
    assert worker.describe().classes["Linear"] == "conformance.lazy:Linear"
    call = ModuleCall("Linear", {"in_features": 4, "out_features": 2}, inputs=(X,))
    reply = worker.call(call)
    np.testing.assert_allclose(reply.outputs[0], X.sum(1, keepdims=True) * [1, 1], rtol=1e-5)


def test_broken_module_that_no_component_needs(write: Write) -> None:
    folder = write(
        {
            "tests/adapters.py": """
                import torch
                from pkg_t.tokenizer import (
                    Tokenizer,
                    train,
                )
                from pkg_t.model import silu

                def run_silu(in_features):
                    return silu(in_features)

                def get_tokenizer(vocab) -> Tokenizer:
                    return Tokenizer(vocab)

                def run_train_bpe(path):
                    return train(path)
                """,
            "pkg_t/tokenizer.py": "x = = 1",
            "pkg_t/model.py": "def silu(x):\n    return x * 3",
        }
    )
    candidate = InProcess(resolve(str(folder), cwd=Path("/")))
    try:
        (notice,) = candidate.describe().notices
        assert (
            "left out the import of 'Tokenizer' and 'train' in tests/adapters.py, line 3" in notice
        )
        assert "pkg_t/tokenizer.py, line 1" in notice
        reply = candidate.call(Call("run_silu", {"in_features": X}))
        np.testing.assert_array_equal(reply.outputs[0], 3 * X)
        reply = candidate.call(Call("run_train_bpe", {"path": "x"}))
        assert reply.outcome is Outcome.RAISED
        assert "needs 'Tokenizer' and 'train', whose import failed" in reply.message
    finally:
        candidate.close()


def test_broken_module_that_a_component_needs(write: Write) -> None:
    text = "from pkg_n import silu\ndef run_silu(in_features):\n    return silu(in_features)"
    error = refused(write({"adapters.py": text, "pkg_n.py": "raise ValueError('no')"}))
    assert "pkg_n.py, line 1: ValueError: no" in error.message


# -- what cannot be loaded -----------------------------------------------------------------------


def refused(folder: Path) -> LoadError:
    """The error that loading in this process ends with."""
    path, finders = list(sys.path), list(sys.meta_path)
    try:
        with pytest.raises(LoadError) as caught:
            InProcess(resolve(str(folder), cwd=Path("/")))
        return caught.value
    finally:
        assert (path, finders) == (sys.path, sys.meta_path)
        for name in [n for n in sys.modules if n.startswith(("adapters", "pkg_"))]:
            del sys.modules[name]


STUB = "def run_silu(x): ...\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"adapters.py": "def run_silu(x): ...\nx = = 3"},
            "adapters.py, line 2: SyntaxError: invalid syntax (read by Python",
        ),
        (
            {
                "adapters.py": "from pkg_a import y\nz = y\ndef run_silu(x): ...",
                "pkg_a.py": "\ny = undefined",
            },
            "importing adapters.py failed at pkg_a.py, line 2: NameError: name 'undefined'",
        ),
        (
            {"adapters.py": "from pkg_b.Model import x\ny = x\n" + STUB, "pkg_b/model.py": "x = 1"},
            "the file is called 'model.py'",
        ),
        (
            {"adapters.py": "import Pkg_C\nx = Pkg_C\n" + STUB, "pkg_c/model.py": "x = 1"},
            "the file is called 'pkg_c'",
        ),
        (
            {"adapters.py": "def run_silu(x): ...\nexit(3)"},
            "adapters.py, line 2 calls exit(3) while it is imported",
        ),
        (
            {"adapters.py": "def run_silu(x): ...\nx = [0] * (1 << 60)"},
            "adapters.py, line 2 runs out of memory while it is imported",
        ),
        (
            {"adapters.py": STUB + "import torch.nothing.here\nx = torch"},
            "importing adapters.py failed",
        ),
    ],
)
def test_one_clear_message(write: Write, files: dict[str, str], words: str) -> None:
    error = refused(write(files))
    assert words in error.message
    assert "\n" not in error.message
    assert "worker.py" not in error.details


def test_process_that_ends_during_the_import(write: Write) -> None:
    text = "import os\nprint('last words', flush=True)\nos._exit(0)\ndef run_silu(x): ..."
    folder = write({"adapters.py": text})
    with Worker(resolve(str(folder), cwd=Path("/"))) as worker:
        with pytest.raises(LoadError, match="the process ended with exit status 0") as caught:
            worker.describe()
        assert "last words" in caught.value.details


def test_import_that_never_ends(write: Write) -> None:
    folder = write({"adapters.py": "def run_silu(x): ...\nwhile True:\n    pass"})
    bounds = Limits(import_seconds=1)
    worker = Worker(resolve(str(folder), cwd=Path("/")), limits=bounds)
    with worker, pytest.raises(LoadError, match="importing the candidate takes more than 1 s"):
        worker.describe()


def test_library_that_is_not_installed(write: Write) -> None:
    folder = write({"known.py": "import pkg_missing as x\ny = x\n" + STUB})
    submission = dataclasses.replace(resolve(str(folder / "known.py"), cwd=Path("/")), ours=True)
    with pytest.raises(LoadError, match=r"known\.py needs the package 'pkg_missing', which is not"):
        InProcess(submission)


def test_interpreter_without_torch(write: Write, tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "env", with_pip=False, symlinks=sys.platform != "win32")
    folder = write({"adapters.py": "def run_silu(x): ..."})
    worker = Worker(resolve(str(folder), cwd=Path("/")), python=tmp_path / "env")
    with worker, pytest.raises(LoadError, match=r"torch cannot be imported by .*env"):
        worker.describe()


def test_device_that_is_not_there(write: Write) -> None:
    folder = write({"adapters.py": "def run_silu(x): ..."})
    worker = Worker(resolve(str(folder), cwd=Path("/")), device="cuda:7")
    with worker, pytest.raises(UsageError, match="device 'cuda:7' cannot be used"):
        worker.describe()


# -- classes without adapters --------------------------------------------------------------------

CLASSES = """
    import torch
    from torch import nn

    class Linear(nn.Module):
        def __init__(self, in_features, out_features, device=None, dtype=None):
            super().__init__()
            self.W = nn.Parameter(torch.empty(out_features, in_features, dtype=dtype))
        def forward(self, x):
            return x @ self.W.T

    class RMSNorm(nn.Module):
        def __init__(self, d_model, epsilon=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d_model))
            self.epsilon = epsilon
        def forward(self, x):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * self.weight

    class SwiGLU(nn.Module):
        def __init__(self, d_model):
            super().__init__()

    class RotaryPositionalEmbedding(nn.Module):
        def __init__(self, theta, d_k, max_seq_len, device=None):
            super().__init__()
        def forward(self, x, token_positions):
            return x + token_positions[..., None]

    class MultiHeadSelfAttention(nn.Module):
        def __init__(self, d_model, num_heads, theta=None, max_seq_len=None):
            super().__init__()
            for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
                setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        def forward(self, x):
            return self.output_proj(x)

    def softmax(x, dim):
        return torch.exp(x) / torch.exp(x).sum(dim, keepdim=True)

    def scaled_dot_product_attention(q, k, v, mask=None):
        return v * (1 if mask is None else 2)
"""


@pytest.fixture(scope="module")
def classes(write_module: Write) -> Iterator[InProcess]:
    folder = write_module({"byname/__init__.py": "", "byname/model.py": CLASSES})
    candidate = InProcess(resolve(str(folder), cwd=Path("/")))
    yield candidate
    candidate.close()


def test_classes_become_adapters(classes: InProcess) -> None:
    functions = classes.describe().functions
    assert functions["run_linear"] == ("d_in", "d_out", "weights", "in_features")
    assert set(functions) == {
        "run_linear",
        "run_rmsnorm",
        "run_swiglu",
        "run_rope",
        "run_multihead_self_attention",
        "run_multihead_self_attention_with_rope",
        "run_softmax",
        "run_scaled_dot_product_attention",
    }
    assert classes.describe().classes["RMSNorm"] == "byname.model:RMSNorm"


W = np.arange(8, dtype=np.float32).reshape(2, 4)
EYE = np.eye(4, dtype=np.float32)
PROJECTIONS = {f"{n}_proj_weight": EYE * i for i, n in enumerate("qkvo")}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("run_linear", {"d_in": 4, "d_out": 2, "weights": W, "in_features": X}, X @ W.T),
        (
            "run_rmsnorm",
            {"d_model": 4, "eps": 3.0, "weights": W[0], "in_features": X},
            X / np.sqrt((X * X).mean(-1, keepdims=True) + 3) * W[0],
        ),
        (
            "run_rope",
            {
                "d_k": 4,
                "theta": 1e4,
                "max_seq_len": 8,
                "in_query_or_key": X,
                "token_positions": np.arange(3),
            },
            X + np.arange(3)[:, None],
        ),
        (
            "run_multihead_self_attention",
            {"d_model": 4, "num_heads": 2, **PROJECTIONS, "in_features": X},
            3 * X,
        ),
        (
            "run_multihead_self_attention_with_rope",
            {
                "d_model": 4,
                "num_heads": 2,
                "theta": 1e4,
                "max_seq_len": 8,
                **PROJECTIONS,
                "in_features": X,
                "token_positions": np.arange(3),
            },
            3 * X,
        ),
        ("run_softmax", {"in_features": X, "dim": 0}, np.exp(X) / np.exp(X).sum(0)),
        ("run_scaled_dot_product_attention", {"Q": X, "K": X, "V": X, "mask": None}, X),
        ("run_scaled_dot_product_attention", {"Q": X, "K": X, "V": X, "mask": X > 0}, 2 * X),
    ],
)
def test_adapted_classes_compute(
    classes: InProcess, name: str, arguments: dict[str, Any], expected: Any
) -> None:
    reply = classes.call(Call(name, arguments))
    assert reply.outcome is Outcome.PASSED, reply.message
    np.testing.assert_allclose(reply.outputs[0], expected, rtol=1e-5)


def test_class_whose_constructor_does_not_fit(classes: InProcess) -> None:
    arguments = {"d_model": 4, "d_ff": 2, "w1_weight": W, "w2_weight": W.T, "w3_weight": W}
    reply = classes.call(Call("run_swiglu", {**arguments, "in_features": X}))
    assert reply.outcome is Outcome.NOT_IMPLEMENTED
    assert "d_ff" in reply.message


def test_broken_module_takes_only_its_classes_along(write: Write) -> None:
    folder = write(
        {
            "bn_good.py": "import torch\ndef silu(x):\n    return x * torch.sigmoid(x)",
            "bn_bad.py": "class Linear: ...\nraise RuntimeError('broken')",
        }
    )
    candidate = InProcess(resolve(str(folder), cwd=Path("/")))
    try:
        description = candidate.describe()
        assert set(description.functions) == {"run_silu"}
        assert any("Linear is left out" in n and "broken" in n for n in description.notices)
    finally:
        candidate.close()
