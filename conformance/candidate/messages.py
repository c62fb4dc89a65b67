"""What the judge asks of a candidate and what comes back.

These classes are the judge's side of the conversation.  They hold NumPy arrays (bfloat16 as
`ml_dtypes.bfloat16`) and plain Python values, never tensors: the process that uses them does not
import torch.  How they travel is `frames.py`; who answers is `worker.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return _EMPTY


NOT_ASKED = "not asked"
"""How the message of a check begins that was given up after too many others had been lost."""


class Outcome(StrEnum):
    """How one check ended.  In a `Reply`, PASSED says that an answer came; the judge compares."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_IMPLEMENTED = "not implemented"
    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    #: it has reached for the suite's own code or reference implementation
    DELEGATED = "delegated"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Call:
    """One call of an adapter function, always by keyword, on tensors built afresh for this call."""

    #: adapter function, e.g. "run_rmsnorm"
    function: str
    #: arrays (float16/32/64, bfloat16, int64, bool), int, float, bool, str, None, or dict of arrays
    arguments: Mapping[str, Any]
    #: argument -> memory layout of equal values; "weights.x" names an entry of a dict argument:
    #: "contiguous" | "transposed" (last two axes stored swapped) | "swapped" (the two axes before
    #: the last stored swapped, as heads are split off) | "sliced" (every second element
    #: of a larger buffer, offset not 0) | "expanded" (axis 0 repeated, stride 0; equal rows only)
    layouts: Mapping[str, str] = field(default_factory=_empty)
    #: arguments to differentiate, "in_features" or "weights.ln1.weight" for an entry of a dict
    wrt: tuple[str, ...] = ()
    #: gradient with respect to the output, float64; cast to the output's dtype; needed with `wrt`
    cotangent: Array | None = None
    #: "grad" | "no_grad" | "inference": the mode that torch is in during the call
    mode: str = "grad"
    #: so many calls with equal, fresh inputs; all outputs come back
    repeat: int = 1
    #: 2: backward twice over the same graph, gradients of the second pass come back as well
    backward_passes: int = 1


@dataclass(frozen=True)
class Built:
    """An object of another class of the candidate, as an argument of a constructor."""

    class_name: str
    #: its keywords, as those of a `ModuleCall`
    constructor: Mapping[str, Any]


@dataclass(frozen=True)
class ModuleCall:
    """One use of a module class: construct, load a state, convert, run, differentiate, train."""

    #: name in the specification, e.g. "RMSNorm"
    class_name: str
    #: keywords; "dtype": "float32" and "device": "cpu" become torch objects in the worker, and a
    #: `Built` becomes the object it describes
    constructor: Mapping[str, Any]
    seed: int = 0
    #: nothing is constructed: the answer is the constructor's signature
    signature_only: bool = False
    #: given to load_state_dict
    state: Mapping[str, Array] | None = None
    #: whether `state` has to name everything that the module's state dict has
    strict: bool = True
    #: module.to(dtype) after loading, e.g. "bfloat16"
    convert: str | None = None
    #: positional arguments of forward; empty: forward is not called
    inputs: tuple[Any, ...] = ()
    #: when given: backward; gradients of inputs[0] (if floating) and of all parameters come back
    cotangent: Array | None = None
    #: send the tensors of the state dict
    return_state: bool = False
    #: that many optimiser steps towards a fixed random target; the losses come back
    steps: int = 0


@dataclass(frozen=True)
class Observe:
    """A call made only to see what the candidate uses in it; its values do not come back."""

    call: Call | ModuleCall


@dataclass(frozen=True)
class Use:
    """What one line of the candidate called, what that called in turn, and so on.

    `names` are dotted names of functions, the last one perhaps an operator ("aten._softmax"). With
    no `file`, the candidate named the function itself and the worker called it.
    """

    file: str
    line: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Argument:
    """One parameter of a constructor or of `forward`; `*args` and `**kwargs` are left out."""

    name: str
    #: it has no default
    required: bool
    #: it can be given by its place
    positional: bool
    #: it can be given by its name
    keyword: bool


@dataclass(frozen=True)
class Reply:
    """What came of a call.  Anything but PASSED has a `message` of one clear sentence."""

    outcome: Outcome
    #: exception type and text, signal, limit, or what was returned instead of a tensor
    message: str = ""
    #: frames of the candidate only, bounded
    traceback: str = ""
    #: one array per repetition
    outputs: tuple[Array, ...] = ()
    #: dtype of the output as the candidate returned it, e.g. "bfloat16"
    dtype: str = ""
    device: str = ""
    #: argument -> gradient, None where the graph does not reach it; for a module the keys are
    #: "input" (the first input, if floating) and the names of the parameters
    gradients: Mapping[str, Array | None] = field(default_factory=_empty)
    second_gradients: Mapping[str, Array | None] = field(default_factory=_empty)
    #: arguments that hold other values after the call: "x", "weights.x" for a tensor in a dict;
    #: "weights[x]" where the dict itself was changed: entries added, removed or replaced
    modified: tuple[str, ...] = ()
    #: arguments whose storage the output shares
    aliased: tuple[str, ...] = ()
    #: an earlier output changed through a later call, or two outputs share storage
    overwritten: bool = False
    #: stdout and stderr of the call, bounded
    printed: str = ""
    #: time inside the candidate, in seconds
    seconds: float = 0.0
    #: for a ModuleCall: "parameters", "buffers", "state", "losses", "constructor" (names), and
    #: "signature" (of the constructor) and "forward": what they take, see `Argument`
    module: Mapping[str, Any] = field(default_factory=_empty)
    #: for a ModuleCall with return_state: state-dict key -> array
    state: Mapping[str, Array] = field(default_factory=_empty)
    #: for `Observe`: what was used, and the candidate's files that are loaded by now
    uses: tuple[Use, ...] = ()
    files: tuple[str, ...] = ()
    #: for `Observe`: the call came to its end, and nothing was left out
    whole: bool = False


@dataclass(frozen=True)
class Description:
    """What the worker knows after it has imported the candidate."""

    #: adapter function -> names of its parameters; "**" at the end if it takes any keyword
    functions: Mapping[str, tuple[str, ...]]
    #: "RMSNorm" -> "package.model:RMSNorm"
    classes: Mapping[str, str]
    python: str
    torch: str
    platform: str
    device: str
    device_name: str
    threads: int
    #: what was in force, e.g. "separate process", "GPU hidden"
    isolation: tuple[str, ...]
    #: what the reader of a report should know, e.g. "stood in for the missing package wandb"
    notices: tuple[str, ...]
    printed: str
