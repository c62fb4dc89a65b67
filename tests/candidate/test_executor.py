"""What a reply says about a call, tried in this process on small functions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from conformance.candidate.inprocess import LocalCaller, local_caller
from conformance.candidate.messages import Call, ModuleCall, Outcome, Reply
from conformance.errors import InternalError

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def ask(function: Callable[..., Any], *, x: Any = X, **options: Any) -> Reply:
    """The reply to run_it(x=...)."""
    return local_caller({"run_it": function}).call(Call("run_it", {"x": x}, **options))


def gradient(reply: Reply, name: str) -> Any:
    """The gradient that must be there."""
    found = reply.gradients[name]
    assert found is not None
    return found


def silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def silu_gradient(x: np.ndarray) -> np.ndarray:
    s = 1 / (1 + np.exp(-x.astype(np.float64)))
    return s * (1 + x * (1 - s))


# -- values and layouts --------------------------------------------------------------------------


def test_output_comes_back_with_its_dtype() -> None:
    reply = ask(silu)
    assert reply.outcome is Outcome.PASSED
    assert reply.dtype == "float32"
    assert reply.device == "cpu"
    np.testing.assert_allclose(reply.outputs[0], X / (1 + np.exp(-X)), rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.int64, np.int32, np.uint8, bool],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_dtype_and_shape_survives_the_way(dtype: Any, shape: tuple[int, ...]) -> None:
    value = np.ones(shape, dtype=dtype)
    reply = ask(lambda x: x.clone(), x=value)
    assert reply.outcome is Outcome.PASSED
    assert reply.outputs[0].dtype == value.dtype
    np.testing.assert_array_equal(reply.outputs[0], value)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e-45])
def test_special_values_survive_the_way(special: float) -> None:
    value = np.full((2, 2), special, dtype=np.float32)
    assert ask(lambda x: x.clone(), x=value).outputs[0].tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("layout", "strides", "offset"),
    [("contiguous", [4, 1], 0), ("transposed", [1, 3], 0), ("sliced", [9, 2], 1)],
)
def test_layouts_have_other_strides_and_equal_values(
    layout: str, strides: list[int], offset: int
) -> None:
    seen: dict[str, Any] = {}

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.update(strides=list(x.stride()), offset=x.storage_offset())
        return silu(x)

    options: Any = {"wrt": ("x",), "cotangent": np.ones(X.shape), "layouts": {"x": layout}}
    reply = ask(look, **options)
    assert seen == {"strides": strides, "offset": offset}
    np.testing.assert_array_equal(reply.outputs[0], ask(silu).outputs[0])
    np.testing.assert_allclose(gradient(reply, "x"), silu_gradient(X), rtol=1e-5)
    assert reply.modified == ()


def test_expanded_layout_differentiates_each_element() -> None:
    rows = np.repeat(X[:1], 3, axis=0)
    cotangent = np.arange(12.0).reshape(3, 4)
    reply = ask(silu, x=rows, layouts={"x": "expanded"}, wrt=("x",), cotangent=cotangent)
    np.testing.assert_allclose(gradient(reply, "x"), silu_gradient(rows) * cotangent, rtol=1e-5)


def test_layouts_do_not_matter_to_tensors_with_too_few_axes() -> None:
    for layout in ("transposed", "sliced", "expanded"):
        value = np.array(2.0, dtype=np.float32)
        reply = ask(lambda x: x * 2, x=value, layouts={"x": layout})
        assert reply.outputs[0] == 4


def test_dict_arguments() -> None:
    def run(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return x @ weights["w"].T

    caller = local_caller({"run_it": run})
    w = np.ones((2, 4), dtype=np.float32)
    arguments = {"weights": {"w": w, "other": w}, "x": X}
    wrt = ("weights.w", "weights.other", "x")
    reply = caller.call(
        Call(
            "run_it", arguments, wrt=wrt, cotangent=np.ones((3, 2)), layouts={"weights.w": "sliced"}
        )
    )
    np.testing.assert_allclose(gradient(reply, "weights.w"), np.stack([X.sum(0)] * 2), rtol=1e-6)
    assert reply.gradients["weights.other"] is None
    assert reply.gradients["x"] is not None


# -- gradients -----------------------------------------------------------------------------------


def test_gradient_and_a_second_backward() -> None:
    reply = ask(silu, wrt=("x",), cotangent=np.ones(X.shape), backward_passes=2)
    np.testing.assert_allclose(gradient(reply, "x"), silu_gradient(X), rtol=1e-5)
    np.testing.assert_array_equal(reply.gradients["x"], reply.second_gradients["x"])


def test_output_without_a_graph_has_no_gradient() -> None:
    reply = ask(lambda x: x.detach() * 2, wrt=("x",), cotangent=np.ones(X.shape))
    assert reply.outcome is Outcome.PASSED
    assert reply.gradients == {"x": None}


def test_failing_backward_says_so() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            raise NotImplementedError("later")

    reply = ask(Broken.apply, wrt=("x",), cotangent=np.ones(X.shape))
    assert reply.outcome is Outcome.RAISED
    assert reply.message.startswith("backward: ")


def test_in_place_change_of_what_backward_needs() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = torch.sigmoid(x)
        z = y * x
        y += 1
        return z

    reply = ask(run, wrt=("x",), cotangent=np.ones(X.shape))
    assert reply.outcome is Outcome.RAISED
    assert "modified by an inplace operation" in reply.message


def test_wrong_shape_takes_no_gradient() -> None:
    reply = ask(lambda x: x[0] * 1, wrt=("x",), cotangent=np.ones(X.shape))
    assert reply.outcome is Outcome.PASSED
    assert reply.gradients == {"x": None}
    assert "(4,)" in reply.message


def test_wrt_needs_a_cotangent() -> None:
    with pytest.raises(InternalError):
        ask(silu, wrt=("x",))


@pytest.mark.parametrize(
    ("mode", "grad", "inference"),
    [("grad", True, False), ("no_grad", False, False), ("inference", False, True)],
)
def test_modes(mode: str, grad: bool, inference: bool) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([torch.is_grad_enabled(), torch.is_inference_mode_enabled()])

    assert ask(run, mode=mode).outputs[0].tolist() == [grad, inference]


# -- purity --------------------------------------------------------------------------------------


def test_changed_input_is_seen() -> None:
    assert ask(lambda x: x.mul_(2) + 0).modified == ("x",)


def test_nan_in_the_input_is_no_change() -> None:
    value = np.array([[np.nan, 1.0]], dtype=np.float32)
    assert ask(lambda x: x + 0, x=value).modified == ()


def test_changed_dict_is_seen() -> None:
    def run(weights: dict[str, torch.Tensor]) -> torch.Tensor:
        output = weights["a"] + weights["b"]
        weights["a"].zero_()
        weights["b"] = weights["b"] * 2
        weights["new"] = weights.pop("c")
        weights["same"] = weights["same"].clone()
        return output

    weights = {k: np.ones(3, dtype=np.float32) for k in ("a", "b", "c", "same")}
    reply = local_caller({"run_it": run}).call(Call("run_it", {"weights": weights}))
    assert sorted(reply.modified) == ["weights.a", "weights[b]", "weights[c]", "weights[new]"]


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x[1:], lambda x: x.transpose(0, 1)])
def test_output_that_shares_memory_with_the_input(function: Callable[..., Any]) -> None:
    assert ask(function).aliased == ("x",)


def test_fresh_output_is_not_aliased() -> None:
    assert ask(silu).aliased == ()


def test_repeated_calls_get_fresh_equal_inputs() -> None:
    reply = ask(lambda x: x.add_(1).clone(), repeat=3)
    assert len(reply.outputs) == 3
    for output in reply.outputs:
        np.testing.assert_array_equal(output, X + 1)


def test_output_kept_and_overwritten_by_the_next_call() -> None:
    kept = torch.zeros(3, 4)
    calls = iter(range(10))
    reply = ask(lambda x: kept.copy_(x * next(calls)), repeat=2)
    assert reply.overwritten
    np.testing.assert_array_equal(reply.outputs[0], X * 0)
    assert not ask(silu, repeat=2).overwritten


def test_stub_with_uninitialised_memory_gets_nothing_useful() -> None:
    for shape in ((3, 4), (64, 64)):
        value = np.ones(shape, dtype=np.float32)
        for _ in range(5):
            reply = ask(torch.empty_like, x=value)
            assert not np.array_equal(reply.outputs[0], value)


# -- what is no answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, Ellipsis, NotImplemented])
def test_returning_nothing_is_not_implemented(value: Any) -> None:
    assert ask(lambda x: value).outcome is Outcome.NOT_IMPLEMENTED


def test_not_implemented_error() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("todo")

    reply = ask(run)
    assert reply.outcome is Outcome.NOT_IMPLEMENTED
    assert reply.message == "raises NotImplementedError: todo"


def test_missing_forward_of_a_module_is_not_implemented() -> None:
    assert ask(lambda x: torch.nn.Module()(x)).outcome is Outcome.NOT_IMPLEMENTED


def test_a_dtype_that_torch_lacks_is_an_error() -> None:
    reply = ask(lambda x: torch.softmax(x.long(), -1))
    assert reply.outcome is Outcome.RAISED


def test_older_editions() -> None:
    def lacks(y: torch.Tensor) -> torch.Tensor:
        return y

    reply = ask(lacks)
    assert reply.outcome is Outcome.NOT_IMPLEMENTED
    assert "'y'" in reply.message

    def asks_more(x: torch.Tensor, more: int) -> torch.Tensor:
        return x

    assert "'more'" in ask(asks_more).message

    caller = local_caller({"run_it": lambda y=None: y})
    reply = caller.call(Call("run_it", {"x": X, "theta": 1.0}))
    assert reply.outcome is Outcome.NOT_IMPLEMENTED
    assert reply.message == "run_it has no parameter named 'x' and 'theta'"


def test_none_for_an_unknown_parameter_is_left_away() -> None:
    caller = local_caller({"run_it": lambda x: x * 1})
    assert caller.call(Call("run_it", {"x": X, "mask": None})).outcome is Outcome.PASSED
    caller = local_caller({"run_it": lambda x, **more: x + len(more)})
    reply = caller.call(Call("run_it", {"x": X, "mask": None}))
    np.testing.assert_array_equal(reply.outputs[0], X + 1)


def test_absent_function() -> None:
    reply = local_caller({}).call(Call("run_silu", {"in_features": X}))
    assert reply.outcome is Outcome.NOT_IMPLEMENTED
    assert "run_silu" in reply.message


class Strange(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__torch_function__(*args, **kwargs)  # type: ignore[no-untyped-call]


class Plain(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: (x, x), "a tuple of 2"),
        (lambda x: [x], "a list of 1"),
        (lambda x: {"x": x}, "a dict of 1"),
        (lambda x: x.numpy(), "a NumPy array"),
        (lambda x: 1.5, "a plain number"),
        (lambda x: "x", "a string"),
        (lambda x: object(), "type object"),
        (lambda x: x.to(torch.complex64), "a complex tensor"),
        (lambda x: x.to_sparse(), "a sparse"),
        (lambda x: x.to("meta"), "without values"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "a quantised tensor"),
        (lambda x: x.to(torch.float8_e4m3fn), "dtype float8_e4m3fn"),
        (lambda x: x.as_subclass(Strange), "class Strange"),
        (lambda x: torch.zeros(1).expand(1 << 40), "more than can be sent"),
    ],
)
def test_what_is_no_tensor_fails(function: Callable[..., Any], words: str) -> None:
    reply = ask(function)
    assert reply.outcome is Outcome.FAILED
    assert words in reply.message


@pytest.mark.parametrize(
    "function", [lambda x: torch.nn.Parameter(x * 1), lambda x: (x * 1).as_subclass(Plain)]
)
def test_plain_subclasses_are_tensors(function: Callable[..., Any]) -> None:
    assert ask(function).outcome is Outcome.PASSED


# -- errors --------------------------------------------------------------------------------------


def test_exception_with_its_type_and_text() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("shape (3, 4)\n is not for me")

    reply = ask(run)
    assert reply.outcome is Outcome.RAISED
    assert reply.message == "ValueError: shape (3, 4) is not for me"


def test_exception_whose_text_fails() -> None:
    class Nasty(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def run(x: torch.Tensor) -> torch.Tensor:
        raise Nasty

    assert ask(run).message.startswith("Nasty")


def test_long_texts_are_cut() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("a" * 1_000_000)

    assert len(ask(run).message) < 2000


def test_exit_is_an_error() -> None:
    reply = ask(lambda x: exit(0))
    assert reply.outcome is Outcome.RAISED
    assert "exit(0)" in reply.message


def test_interruption_by_the_user_gets_through() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(run)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"),
    ],
)
def test_lack_of_memory(error: Exception) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        raise error

    assert ask(run).outcome is Outcome.OUT_OF_MEMORY


# -- state of torch ------------------------------------------------------------------------------


def test_global_state_is_put_back(tmp_path: Any) -> None:
    folder, threads = os.getcwd(), torch.get_num_threads()

    def spoil(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.inference_mode().__enter__()
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(threads + 1)
        torch.autograd.set_detect_anomaly(True)
        os.chdir(tmp_path)
        return x * 1

    def look(x: torch.Tensor) -> torch.Tensor:
        assert torch.get_default_dtype() is torch.float32
        assert torch.get_default_device() == torch.device("cpu")
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == threads
        assert not torch.is_anomaly_enabled()
        assert os.getcwd() == folder
        return x * 1

    caller = local_caller({"run_spoil": spoil, "run_look": look})
    for name in ("run_spoil", "run_look", "run_spoil"):
        reply = caller.call(Call(name, {"x": X}, wrt=("x",), cotangent=np.ones(X.shape)))
        assert reply.outcome is Outcome.PASSED, reply.message
    assert torch.get_default_dtype() is torch.float32


def test_random_numbers_depend_on_the_question_and_the_repetition_alone() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.rand(3), torch.tensor(np.random.rand(3))])

    caller = local_caller({"run_it": run})
    first, second = (caller.call(Call("run_it", {"x": X}, repeat=2)) for _ in range(2))
    other = caller.call(Call("run_it", {"x": X + 1}))
    np.testing.assert_array_equal(first.outputs[0], second.outputs[0])
    np.testing.assert_array_equal(first.outputs[1], second.outputs[1])
    assert not np.isin(first.outputs[0], first.outputs[1]).any()
    assert not np.isin(first.outputs[0], other.outputs[0]).any()


def test_seconds_are_those_of_the_candidate() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.05)
        return x * 1

    assert 0.04 < ask(run).seconds < 5


# -- modules -------------------------------------------------------------------------------------


class RMSNorm(torch.nn.Module):
    def __init__(
        self, d_model: int, eps: float = 1e-5, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(d_model, device=device, dtype=dtype))
        self.register_buffer("table", torch.zeros(2), persistent=False)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind = x.dtype
        x = x.float()
        return (x * torch.rsqrt((x**2).mean(-1, keepdim=True) + self.eps) * self.weight).to(kind)


@pytest.fixture(scope="module")
def caller() -> LocalCaller:
    return local_caller({"RMSNorm": RMSNorm, "Linear": lambda d: None, "Number": int})


def test_module_is_described(caller: LocalCaller) -> None:
    call = ModuleCall("RMSNorm", {"d_model": 4, "dtype": "float64", "device": "cpu"})
    module = caller.call(call).module
    assert module["constructor"] == ["d_model", "eps", "device", "dtype"]
    assert module["parameters"] == [
        {
            "name": "weight",
            "shape": [4],
            "dtype": "float64",
            "device": "cpu",
            "requires_grad": True,
        }
    ]
    assert module["buffers"] == [
        {"name": "table", "shape": [2], "dtype": "float32", "persistent": False}
    ]
    assert module["state"] == [{"name": "weight", "shape": [4], "dtype": "float64"}]


def test_module_runs_and_is_differentiated(caller: LocalCaller) -> None:
    state = {"weight": np.full(4, 2.0, dtype=np.float32)}
    reply = caller.call(
        ModuleCall(
            "RMSNorm",
            {"d_model": 4},
            state=state,
            inputs=(X,),
            cotangent=np.ones(X.shape),
            return_state=True,
        )
    )
    assert reply.outcome is Outcome.PASSED, reply.message
    assert set(reply.gradients) == {"input", "weight"}
    expected = 2 * X / np.sqrt((X.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(reply.outputs[0], expected, rtol=1e-5)
    np.testing.assert_array_equal(reply.state["weight"], state["weight"])


def test_module_is_converted(caller: LocalCaller) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    call = ModuleCall("RMSNorm", {"d_model": 4}, convert="bfloat16", inputs=(x,), return_state=True)
    reply = caller.call(call)
    assert reply.dtype == "bfloat16"
    assert reply.state["weight"].dtype == ml_dtypes.bfloat16


def test_module_learns(caller: LocalCaller) -> None:
    call = ModuleCall("RMSNorm", {"d_model": 4}, inputs=(X,), steps=5)
    losses = caller.call(call).module["losses"]
    assert len(losses) == 6
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("call", "outcome", "words"),
    [
        (ModuleCall("SwiGLU", {}), Outcome.NOT_IMPLEMENTED, "no class named SwiGLU"),
        (ModuleCall("RMSNorm", {"width": 1}), Outcome.NOT_IMPLEMENTED, "'d_model'"),
        (ModuleCall("RMSNorm", {"d_model": 4, "bias": True}), Outcome.NOT_IMPLEMENTED, "'bias'"),
        (ModuleCall("Number", {}), Outcome.FAILED, "not a torch.nn.Module"),
        (
            ModuleCall("RMSNorm", {"d_model": 4}, state={"gain": X[0]}),
            Outcome.RAISED,
            "Missing key(s)",
        ),
    ],
)
def test_module_that_does_not_fit(
    caller: LocalCaller, call: ModuleCall, outcome: Outcome, words: str
) -> None:
    reply = caller.call(call)
    assert reply.outcome is outcome
    assert words in reply.message
