"""The process in which a candidate runs: imports it, calls it, reports what it did.

One self-contained module: it is started as a script by an interpreter that may not be ours (Python
3.9 or newer, with torch; nothing else is needed) and imports nothing of `conformance`, so that
nothing of it is there for a candidate to import.  `process.py` is the other side.

Started with the word "serve" it is the fork server instead (`serve_forks`).

What happens, in this order:

1. Unless a sandbox does it, a keeper stays behind (`keep`): it ends with the judge, and ends
   whatever the candidate leaves behind.
2. The pipes that came as stdin and stdout are put aside for the conversation; stdin becomes empty,
   stdout and stderr both become the pipe in which the judge collects what the candidate prints.
3. torch is imported (event "torch"); then come the limits on what the process may use.
4. The request "load" says where the candidate is.  Its folders join `sys.path`, the harness's own
   are taken off, the adapters module is imported (`Loader`).  The answer names what was found.
5. Each request "call" or "module" is carried out by `Executor` on tensors built for it alone.

A frame is two little-endian 64-bit lengths, a JSON header and a body in the safetensors format.
Each answer carries the id of its request; the event "importing" may come before it and says that
the candidate has begun to import something during the call, which earns it more time.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import errno
import faulthandler
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import opcode
import os
import platform
import random
import select
import signal
import site
import struct
import sys
import sysconfig
import threading
import time
import types
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import torch
else:
    torch = None  # set by `import_torch`: the judge may import this module for its codec alone

#: taken now, before a candidate could put something else in their place
clock = time.perf_counter

PREFIX = struct.Struct("<QQ")
MARK = b"\0\x1eanswered "
MAX_MESSAGE = 1000
MAX_TRACEBACK_FRAMES = 12
MAX_OUTPUT_BYTES = 256 << 20
#: of one graded answer and of all that is sent with it; honest ones take a quarter of a megabyte
MAX_GRADED_BYTES = 4 << 20
MAX_BODY_BYTES = 16 << 20

Header = dict[str, Any]


#: made on first use, see `scalar_function`
_scalar_function: Any = None


def import_torch() -> None:
    """Imports torch under the name that this module uses; a second call does nothing."""
    global torch
    if torch is None:
        torch = importlib.import_module("torch")


# ------------------------------------------------------------------------------------------------
# Frames and the safetensors format, on the level of bytes


def pack(tensors: Sequence[tuple[str, str, Sequence[int], Any]]) -> bytes:
    """(name, dtype such as "F32", shape, bytes) of each tensor -> one safetensors file."""
    table: dict[str, Any] = {}
    end = 0
    for name, dtype, shape, data in tensors:
        table[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [end, end + len(data)],
        }
        end += len(data)
    head = json.dumps(table).encode()
    head += b" " * (-len(head) % 8)
    return b"".join([struct.pack("<Q", len(head)), head, *[data for *_, data in tensors]])


def unpack(body: Any) -> list[tuple[str, str, list[int], int, int]]:
    """(name, dtype, shape, first byte, end) of each tensor in a safetensors file."""
    if not body:
        return []
    (length,) = struct.unpack_from("<Q", body)
    start = 8 + length
    table = json.loads(bytes(body[8:start]))
    table.pop("__metadata__", None)
    found = []
    for name, entry in table.items():
        first, end = entry["data_offsets"]
        found.append((name, entry["dtype"], entry["shape"], start + first, start + end))
    return found


class Channel:
    """The conversation with the judge; several threads may send."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = os.fdopen(incoming, "rb")
        self._outgoing = os.fdopen(outgoing, "wb")
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def receive(self) -> tuple[Header, bytearray] | None:
        """The next request; None when the judge has gone."""
        prefix = self._incoming.read(PREFIX.size)
        if len(prefix) < PREFIX.size:
            return None
        header_size, body_size = PREFIX.unpack(prefix)
        header = self._incoming.read(header_size)
        body = bytearray(body_size)
        if len(header) < header_size or self._incoming.readinto(body) < body_size:
            return None
        return json.loads(header), body

    def send(self, header: Header, body: bytes = b"") -> None:
        """Sends one frame.  A process that the candidate forked must not answer: it ends here."""
        if os.getpid() != self._owner:
            os._exit(1)
        text = json.dumps(header).encode()
        with self._lock:
            self._outgoing.write(PREFIX.pack(len(text), len(body)) + text)
            self._outgoing.write(body)
            self._outgoing.flush()


# ------------------------------------------------------------------------------------------------
# Tensors


#: name in the safetensors format -> bytes of one element
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}
SIZES["BOOL"] = 1


@functools.lru_cache(maxsize=1)
def torch_dtypes() -> dict[str, Any]:
    """Name in the safetensors format -> torch dtype; what can be sent."""
    return {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "I64": torch.int64,
        "I32": torch.int32,
        "I16": torch.int16,
        "I8": torch.int8,
        "U8": torch.uint8,
        "BOOL": torch.bool,
    }


def named_dtype(name: str) -> Any:
    """ "float32" -> torch.float32."""
    return getattr(torch, name.replace("torch.", ""))


def dtype_name(dtype: Any) -> str:
    """torch.float32 -> "float32"."""
    return str(dtype).replace("torch.", "")


def encode_tensors(tensors: dict[str, Any]) -> bytes:
    """Name -> tensor, as one safetensors file; copies, never shares."""
    names = {dtype: name for name, dtype in torch_dtypes().items()}
    packed = []
    for name, tensor in tensors.items():
        plain = tensor.detach().to("cpu").contiguous()
        size = plain.numel() * plain.element_size()
        data = ctypes.string_at(plain.data_ptr(), size) if size else b""
        packed.append((name, names[plain.dtype], list(plain.shape), data))
    return pack(packed)


def decode_tensors(body: bytearray) -> dict[str, Any]:
    """A safetensors file -> name -> tensor on the CPU that shares the memory of `body`."""
    dtypes = torch_dtypes()
    tensors = {}
    for name, dtype_code, shape, first, end in unpack(body):
        dtype = dtypes[dtype_code]
        if end == first:
            tensors[name] = torch.empty(shape, dtype=dtype)
            continue
        count = (end - first) // SIZES[dtype_code]
        tensors[name] = torch.frombuffer(body, dtype=dtype, offset=first, count=count).view(shape)
    return tensors


def bits(tensor: Any) -> Any:
    """The bytes of a tensor's values, as a flat uint8 tensor: NaN equals the same NaN."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def same_bits(first: Any, second: Any) -> bool:
    """Do two tensors hold the same values, bit by bit, with the same shape and dtype?"""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return bool(torch.equal(bits(first), bits(second)))


def memory_range(tensor: Any) -> tuple[int, int]:
    """First and last address of the tensor's whole storage."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def share_memory(first: Any, second: Any) -> bool:
    """Do the storages of two tensors overlap?"""
    if first.device != second.device:
        return False
    (a, b), (c, d) = memory_range(first), memory_range(second)
    return a < d and c < b


def lay_out(source: Any, layout: str) -> tuple[Any, Any]:
    """(base, view): `view(base)` holds the values of `source` in the layout asked for.

    `view` is None when the base itself is the answer: for "contiguous", and where a tensor has too
    few axes for the layout.
    """
    if layout == "transposed" and source.dim() >= 2:
        base = source.transpose(-1, -2).clone(memory_format=torch.contiguous_format)
        return base, lambda tensor: tensor.transpose(-1, -2)
    if layout == "swapped" and source.dim() >= 3:
        base = source.transpose(-2, -3).clone(memory_format=torch.contiguous_format)
        return base, lambda tensor: tensor.transpose(-2, -3)
    if layout == "sliced" and source.dim() >= 1:
        last = source.shape[-1]
        filler = float("nan") if source.is_floating_point() else 0
        base = torch.full(
            (*source.shape[:-1], 2 * last + 1), filler, dtype=source.dtype, device=source.device
        )
        base[..., 1::2] = source
        return base, lambda tensor: tensor[..., 1::2]
    if layout == "expanded" and source.dim() >= 1 and source.shape[0] > 1:
        shape = source.shape
        return source[:1].clone(), lambda tensor: tensor.expand(shape)
    return source.clone(memory_format=torch.contiguous_format), None


def poison(tensors: Sequence[Any]) -> None:
    """Fills and frees memory of the sizes that a lazy stub would get from `empty_like`.

    Without this, `torch.empty_like(x)` may well return memory that held a right answer or `x`.
    """
    sizes = {(t.numel(), t.dtype, t.device) for t in tensors if t.is_floating_point() and t.numel()}
    held = []
    for count, dtype, device in sizes:
        for _ in range(3):
            held.append(torch.full((count,), float("nan"), dtype=dtype, device=device))
    held.clear()


# ------------------------------------------------------------------------------------------------
# What went wrong, in words


class Answer(Exception):
    """Ends a call with an outcome other than "passed"."""

    def __init__(self, outcome: str, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.traceback = traceback


class Missing(ImportError):
    """Raised by the stand-in for what could not be imported, when it is really used."""


class Delegated(Missing):
    """The same for what belongs to this suite, which a candidate has to do without."""


def not_installed(package: str) -> str:
    return f"needs the package '{package}', which is not installed where the candidate runs"


def bounded(text: str, limit: int = MAX_MESSAGE) -> str:
    """`text`, its middle cut out when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... [{len(text) - 2 * half} characters] ... {text[-half:]}"


def exception_text(error: BaseException) -> str:
    """Type and text of an exception on one line; an exception's own `__str__` may fail."""
    try:
        text = str(error).strip()
    except BaseException:
        text = "(its text cannot be shown)"
    if isinstance(error, Missing):
        return bounded(text)
    if isinstance(error, SyntaxError):
        text = str(error.msg)
    if isinstance(error, SystemExit):
        return f"SystemExit: the candidate called exit({bounded(text, 100)})"
    text = " ".join(line.strip() for line in text.splitlines() if line.strip())
    name = type(error).__name__
    return bounded(f"{name}: {text}" if text else name) + limit_hint(error)


#: what a limit or the sandbox looks like from inside
LIMIT_HINTS = {
    errno.EFBIG: "a file may not grow further here",
    errno.ENOSPC: "its temporary folder is full",
    errno.EMFILE: "no more files may be open at once",
    errno.EROFS: "it may write to its temporary folder only, see tempfile.gettempdir()",
    errno.EAGAIN: "no more processes and threads may run",
}


def limit_hint(error: BaseException) -> str:
    """What to make of an error that a limit may be behind; empty for others."""
    number = getattr(error, "errno", None) if isinstance(error, OSError) else None
    hint = LIMIT_HINTS.get(number) if isinstance(number, int) else None
    return f" ({hint})" if hint else ""


def out_of_memory(error: BaseException) -> bool:
    """Does this exception say that memory ran out?"""
    if isinstance(error, MemoryError):
        return True
    with contextlib.suppress(Exception):
        if isinstance(error, torch.cuda.OutOfMemoryError):
            return True
    if not isinstance(error, RuntimeError):
        return False
    text = exception_text(error)
    return any(
        words in text for words in ("can't allocate memory", "not enough memory", "out of memory")
    )


def is_stub(error: BaseException) -> bool:
    """Was this NotImplementedError raised by a `raise` statement?

    torch raises the same type from its compiled part for a dtype without a kernel; that is an
    error of the candidate, not a function that somebody has yet to write.
    """
    if not isinstance(error, NotImplementedError):
        return False
    trace = error.__traceback__
    if trace is None:
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]


@functools.lru_cache(maxsize=4096)
def inside(path: str, root: str) -> bool:
    """Is the file `path` below the folder `root`, both resolved, and not an installed package?"""
    if not path or path.startswith("<"):
        return False
    real = os.path.realpath(path)
    top = root if root.endswith(os.sep) else root + os.sep
    rest = real[len(top) :]
    return real.startswith(top) and "site-packages" not in rest and "dist-packages" not in rest


def candidate_traceback(error: BaseException, root: str) -> str:
    """The frames of `error` that lie in the candidate's files, oldest first, and its last line."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if inside(code.co_filename, root):
            name = os.path.relpath(os.path.realpath(code.co_filename), root)
            lines.append(f'  File "{name}", line {trace.tb_lineno}, in {code.co_name}')
            source = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            if source:
                lines[-1] += "\n    " + bounded(source, 200)
        trace = trace.tb_next
    if len(lines) > MAX_TRACEBACK_FRAMES:
        half = MAX_TRACEBACK_FRAMES // 2
        cut = f"  ... {len(lines) - 2 * half} more frames ..."
        lines = [*lines[:half], cut, *lines[-half:]]
    try:
        text = str(error)
    except BaseException:
        text = ""
    return "\n".join([*lines, bounded(f"{type(error).__name__}: {text}", 2000)])


def place(error: BaseException, root: str) -> str:
    """File and line where `error` came from, the innermost of the candidate's: "m.py, line 3"."""
    if isinstance(error, SyntaxError) and error.filename:
        name = error.filename
        if inside(name, root):
            name = os.path.relpath(os.path.realpath(name), root)
        return f"{name}, line {error.lineno}"
    found = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if inside(file, root):
            name = os.path.relpath(os.path.realpath(file), root)
            found = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def kind_of(value: Any) -> str:
    """What a value is, for the sentence "returned ... instead of a tensor"."""
    if isinstance(value, (tuple, list)):
        return f"a {'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict of {len(value)}"
    if isinstance(value, bool):
        return f"the truth value {value}"
    if isinstance(value, (int, float, complex)):
        return f"a plain number ({type(value).__name__})"
    if isinstance(value, str):
        return "a string"
    if type(value).__module__ == "numpy":
        return "a NumPy array" if type(value).__name__ == "ndarray" else "a NumPy value"
    return f"an object of type {bounded(type(value).__qualname__, 100)}"


def plain_tensor_type(kind: Any) -> bool:
    """Is `kind` a tensor class that leaves torch's behaviour alone, as nn.Parameter does?"""
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return True
    function = getattr(kind.__torch_function__, "__func__", kind.__torch_function__)
    plain: Any = torch.Tensor.__torch_function__
    allowed = (getattr(plain, "__func__", plain), torch._C._disabled_torch_function_impl)
    same_dispatch = kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return function in allowed and same_dispatch


def check_output(value: Any, most: int = MAX_OUTPUT_BYTES) -> Any:
    """The output itself, if it is one plain dense tensor of real numbers; else an Answer."""
    if value is None or value is Ellipsis or value is NotImplemented:
        raise Answer("not implemented", f"returned {value} instead of a tensor")
    if not issubclass(type(value), torch.Tensor):
        raise Answer("failed", f"returned {kind_of(value)} instead of a tensor")
    if not plain_tensor_type(type(value)):
        name = bounded(type(value).__qualname__, 100)
        raise Answer("failed", f"returned a tensor of the class {name} instead of a plain one")
    if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
        # its methods are the candidate's
        value = torch.Tensor.as_subclass(value, torch.Tensor)
    problem = tensor_problem(value, most)
    if problem:
        raise Answer("failed", f"returned {problem} instead of a dense tensor of numbers")
    return value


def tensor_problem(value: Any, most: int = MAX_OUTPUT_BYTES) -> str:
    """Why this tensor cannot be an answer; empty if it can."""
    if value.device.type == "meta":
        return "a tensor without values (device meta)"
    if value.layout is not torch.strided or getattr(value, "is_nested", False):
        return "a sparse or nested tensor"
    if value.is_quantized:
        return "a quantised tensor"
    if value.dtype.is_complex:
        return "a complex tensor"
    if value.dtype not in torch_dtypes().values():
        return f"a tensor of dtype {dtype_name(value.dtype)}"
    if value.numel() * value.element_size() > most:
        return f"a tensor of the shape {tuple(value.shape)}, more than can be sent,"
    return ""


# ------------------------------------------------------------------------------------------------
# The executor


class GlobalState:
    """torch's global settings as they were after the import; put back before every call."""

    def __init__(self, threads: int, *, gpu: bool) -> None:
        self.gpu = gpu
        self.threads = threads
        self.folder = os.getcwd()
        self.dtype = torch.get_default_dtype()
        self.device = self._default_device()
        self.deterministic = torch.are_deterministic_algorithms_enabled()
        self.warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        self.precision = torch.get_float32_matmul_precision()
        self.anomaly = torch.is_anomaly_enabled()
        self.streams = (sys.stdin, sys.stdout, sys.stderr)

    @staticmethod
    def _default_device() -> Any:
        reader = getattr(torch, "get_default_device", None)
        return reader() if reader else None

    def restore(self, seed: int) -> None:
        """Puts everything back and seeds the generators."""
        sys.stdin, sys.stdout, sys.stderr = self.streams
        with contextlib.suppress(OSError):
            if os.getcwd() != self.folder:
                os.chdir(self.folder)
        if torch.is_inference_mode_enabled():
            torch.inference_mode(False).__enter__()
        torch.set_grad_enabled(True)
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        if self._default_device() != self.device:
            # None takes torch's hook off again, "cpu" would leave it in place and slow
            plain = self.device is None or self.device.type == "cpu"
            torch.set_default_device(None if plain else self.device)
        self._restore_flags()
        self._seed(seed)

    def _seed(self, seed: int) -> None:
        """Seeds every generator there is; torch.manual_seed is slow on account of absent GPUs."""
        if self.gpu:
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None and not isinstance(numpy, StandInModule):
            with contextlib.suppress(Exception):
                numpy.random.seed(seed % (1 << 32))

    def _restore_flags(self) -> None:
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        if torch.is_anomaly_enabled() != self.anomaly:
            torch.autograd.set_detect_anomaly(self.anomaly)
        if torch.get_float32_matmul_precision() != self.precision:
            torch.set_float32_matmul_precision(self.precision)
        now = torch.are_deterministic_algorithms_enabled()
        if now != self.deterministic:
            torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)


class Arguments:
    """The arguments of one call, built afresh, with what is needed to see afterwards what happened.

    `values` goes to the candidate.  `originals` are the tensors as they were sent, by name (an
    entry of a dict argument as "weights.x"); `given` are those handed over.
    """

    def __init__(self, header: Header, tensors: dict[str, Any], device: str) -> None:
        self._layouts = header.get("layouts") or {}
        self._wrt = tuple(header.get("wrt") or ())
        self._device = device
        self.originals: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        for name, spec in header["arguments"].items():
            self.values[name] = self._build(name, spec, tensors)

    def _build(self, name: str, spec: Header, tensors: dict[str, Any]) -> Any:
        if "tensor" in spec:
            return self._tensor(name, tensors[spec["tensor"]])
        if "dict" in spec:
            return {
                key: self._tensor(f"{name}.{key}", tensors[reference])
                for key, reference in spec["dict"].items()
            }
        return spec["value"]

    def _tensor(self, name: str, source: Any) -> Any:
        self.originals[name] = source
        base, view = lay_out(source.to(self._device), self._layouts.get(name, "contiguous"))
        if name in self._wrt:
            base.requires_grad_(True)
        tensor = base if view is None else view(base)
        if name in self._wrt and view is not None:
            tensor.retain_grad()
        self.given[name] = tensor
        return tensor

    def gradients(self) -> dict[str, Any]:
        """Gradient of each argument of `wrt`; None where backward did not reach it."""
        found: dict[str, Any] = {}
        for name in self._wrt:
            gradient = self.given[name].grad
            if gradient is not None and gradient.layout is not torch.strided:
                gradient = gradient.to_dense()
            found[name] = None if gradient is None else gradient.detach().clone()
        return found

    def forget_gradients(self) -> None:
        for name in self._wrt:
            self.given[name].grad = None

    def modified(self) -> list[str]:
        """Names of the arguments that no longer hold what was given."""
        changed = [
            name
            for name, tensor in self.given.items()
            if not same_bits(tensor.to("cpu"), self.originals[name])
        ]
        for name, value in self.values.items():
            if isinstance(value, dict):
                changed += self._changed_entries(name, value, changed)
        return changed

    def _changed_entries(self, name: str, value: dict[Any, Any], known: list[str]) -> list[str]:
        """Entries of a dict argument that were added, removed or replaced by something else."""
        before = {n[len(name) + 1 :] for n in self.given if n.startswith(name + ".")}
        changed = [key for key in before if key not in value]
        for key, entry in value.items():
            full = f"{name}.{key}"
            if key not in before:
                changed.append(bounded(str(key), 200))
            elif entry is not self.given[full] and full not in known:
                same = isinstance(entry, torch.Tensor) and same_bits(
                    entry.to("cpu"), self.originals[full]
                )
                if not same:
                    changed.append(key)
        return [f"{name}[{key}]" for key in changed[:100]]

    def aliased(self, output: Any) -> list[str]:
        """Names of the arguments whose memory the output shares."""
        return [name for name, tensor in self.given.items() if share_memory(tensor, output)]


@contextlib.contextmanager
def torch_mode(mode: str) -> Iterator[None]:
    """The mode in which a candidate is called: "grad", "no_grad" or "inference"."""
    manager = {
        "grad": torch.enable_grad,
        "no_grad": torch.no_grad,
        "inference": torch.inference_mode,
    }[mode]
    with manager():
        yield


class Executor:
    """Carries out requests on loaded functions and classes; also usable without a process.

    `functions` maps adapter names to callables.  `find_class` gives the class for a name or None.
    `adopt` is asked about a module that is missing during a call and says whether to try again.
    `armed` is called at the start and end of each run of candidate code.  `delegated` says what of
    this suite the candidate has reached for since this was asked last; "" if nothing.
    """

    def __init__(
        self,
        functions: dict[str, Callable[..., Any]],
        *,
        find_class: Callable[[str], Any] | None = None,
        device: str = "cpu",
        root: str = "",
        seed: int = 0,
        threads: int | None = None,
        adopt: Callable[[ImportError], bool] | None = None,
        explain: Callable[[BaseException], str] | None = None,
        armed: Callable[[bool], None] | None = None,
        delegated: Callable[[], str] | None = None,
        isolated: bool = False,
    ) -> None:
        import_torch()
        self.functions = dict(functions)
        self.device = device
        self.root = root
        self.seed = seed
        self.isolated = isolated
        self._find_class = find_class or (lambda name: None)
        self._adopt = adopt or (lambda error: False)
        self._explain = explain or exception_text
        self._armed = armed or (lambda on: None)
        self._delegated = delegated or (lambda: "")
        self._signatures: dict[Any, Any] = {}
        self.state = GlobalState(threads or torch.get_num_threads(), gpu=device != "cpu")

    def execute(self, header: Header, tensors: dict[str, Any]) -> tuple[Header, dict[str, Any]]:
        """One request in, one answer out; nothing that the candidate does gets through as an error.

        The exception is an interruption by the user when there is no process of its own.
        """
        known = {"call": self._call, "module": self._module, "observe": self._observe}
        work = known[header["op"]]
        self._delegated()  # what was done while it was imported was told then
        try:
            done = self._patiently(work, header, tensors)
            attempt = self._delegated()
            if attempt:
                raise Answer("delegated", attempt)
            return done
        except Answer as answer:
            reply = {
                "outcome": answer.outcome,
                "message": answer.message,
                "traceback": answer.traceback,
            }
            reply.update(getattr(answer, "more", {}))
            return reply, {}
        finally:
            if not self.isolated:
                self.state.restore(self.seed)

    def _patiently(
        self, work: Callable[..., Any], header: Header, tensors: dict[str, Any]
    ) -> tuple[Header, dict[str, Any]]:
        for _ in range(8):
            try:
                return sized(*work(header, tensors))
            except _Again:
                continue
            except Answer as answer:
                attempt = self._delegated()
                if attempt and answer.outcome != "delegated":
                    raise Answer("delegated", attempt, answer.traceback) from None
                raise
        raise Answer("raised", "one missing package after another")

    # -- running candidate code ------------------------------------------------------------------

    def _run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls candidate code; whatever it raises becomes an Answer."""
        self._armed(True)
        try:
            return function(*args, **kwargs)
        except Answer:
            raise
        except BaseException as error:
            if not self.isolated and isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                raise
            raise self._raised(error) from None
        finally:
            self._armed(False)

    def _raised(self, error: BaseException) -> BaseException:
        """The Answer for an exception of the candidate, or `_Again` when it deserves a new try."""
        if isinstance(error, ModuleNotFoundError) and self._adopt(error):
            return _Again()
        trace = candidate_traceback(error, self.root) if self.root else ""
        if isinstance(error, Delegated):
            return Answer("delegated", exception_text(error), trace)
        if out_of_memory(error):
            return Answer("out of memory", exception_text(error), trace)
        if is_stub(error):
            return Answer("not implemented", "raises " + exception_text(error), trace)
        return Answer("raised", self._explain(error), trace)

    def _parameters(self, function: Callable[..., Any]) -> dict[str, Any] | None:
        """Name -> parameter of `function`; None when that cannot be known."""
        if function not in self._signatures:
            try:
                found = dict(inspect.signature(function).parameters)
            except (TypeError, ValueError):
                found = None
            self._signatures[function] = found
        return self._signatures[function]  # type: ignore[no-any-return]

    def _fit(self, name: str, function: Callable[..., Any], given: Sequence[str]) -> list[str]:
        """Keywords to leave away (they are None and unknown there); Answer if others do not fit.

        Older editions of the course lack a keyword, or have one more: the component of today is
        then not implemented there, which is no fault of the code.
        """
        parameters = self._parameters(function)
        if parameters is None:
            return []
        kinds = {p.kind for p in parameters.values()}
        named = [
            n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        missing = [n for n in given if n not in named]
        needed = [n for n in named if parameters[n].default is parameters[n].empty]
        extra = [n for n in needed if n not in given]
        if extra:
            raise Answer(
                "not implemented",
                f"{name} asks for {listed(extra)}, which the contract does not have",
            )
        return [] if inspect.Parameter.VAR_KEYWORD in kinds else missing

    # -- one call of an adapter function ---------------------------------------------------------

    def _call(self, header: Header, tensors: dict[str, Any]) -> tuple[Header, dict[str, Any]]:
        name = header["function"]
        function = self.functions.get(name)
        if function is None:
            raise Answer("not implemented", f"there is no function {name}")
        unknown = self._fit(name, function, list(header["arguments"]))
        lacking = [n for n in unknown if header["arguments"][n] != {"value": None}]
        if lacking:
            raise Answer("not implemented", f"{name} has no parameter named {listed(lacking)}")
        run = _Run(self, header, tensors, function, unknown)
        for index in range(max(1, int(header.get("repeat") or 1))):
            run.once(index)
        return run.answer()

    def backward(self, output: Any, cotangent: Any, *, retain: bool = False) -> None:
        """`output.backward(cotangent)`; its failure is told apart from one of the call itself.

        By way of a scalar: torch imports half a second of SymPy to look at a cotangent.
        """
        try:
            scalar = scalar_function().apply(output, cotangent)
            self._run(scalar.backward, retain_graph=retain)
        except Answer as answer:
            kept = answer.outcome == "out of memory"
            outcome = answer.outcome if kept else "raised"
            raise Answer(outcome, "backward: " + answer.message, answer.traceback) from None

    # -- what a call uses ------------------------------------------------------------------------

    def _observe(self, header: Header, tensors: dict[str, Any]) -> tuple[Header, dict[str, Any]]:
        """The same call once more, only to see what it uses: its values are not needed."""
        work = {"call": self._call, "module": self._module}[header["of"]]
        once = {**header, "repeat": 1, "backward_passes": 1, "steps": 0, "return_state": False}
        seen, whole = Observation(self.root), True
        try:
            with seen.watching():
                work(once, tensors)
        except Answer:
            whole = False
        return {
            "outcome": "passed",
            "uses": [[file, line, list(names)] for file, line, names in seen.uses],
            "files": seen.files(),
            "whole": whole and not seen.truncated,
        }, {}

    # -- one use of a module class ---------------------------------------------------------------

    def _module(self, header: Header, tensors: dict[str, Any]) -> tuple[Header, dict[str, Any]]:
        return _ModuleRun(self, header, tensors).answer()


def scalar_function() -> Any:
    """A function to a scalar whose gradient is a given cotangent: that very tensor, not a copy.

    A backward function that overwrites the gradient it was handed then spoils the next pass, as it
    would in a larger graph. Made here because torch is not there when this module is loaded.
    """
    global _scalar_function
    if _scalar_function is None:

        class InnerProduct(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, output: Any, cotangent: Any) -> Any:
                ctx.cotangent = cotangent
                return output.new_zeros(())

            @staticmethod
            def backward(ctx: Any, *upstream: Any) -> Any:
                return ctx.cotangent, None

        _scalar_function = InnerProduct
    return _scalar_function


def sized(reply: Header, tensors: dict[str, Any]) -> tuple[Header, dict[str, Any]]:
    """The answer itself, unless its tensors are more than a frame may hold."""
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    if size > MAX_BODY_BYTES - (1 << 20):
        raise Answer("failed", f"returned {size} bytes, more than can be sent")
    return reply, tensors


class _Again(Exception):
    """The same request once more: a stand-in has taken the place of a missing package."""


def listed(names: Sequence[str]) -> str:
    """["a", "b"] -> "'a' and 'b'"."""
    quoted = [f"'{n}'" for n in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


class _Run:
    """The repetitions of one call of an adapter function."""

    def __init__(
        self,
        executor: Executor,
        header: Header,
        tensors: dict[str, Any],
        function: Callable[..., Any],
        unknown: Sequence[str],
    ) -> None:
        self.executor = executor
        self.header = header
        self.tensors = tensors
        self.function = function
        self.unknown = unknown
        self.outputs: list[Any] = []
        self.copies: list[Any] = []
        self.passes: list[dict[str, Any]] = []
        self.modified: list[str] = []
        self.aliased: list[str] = []
        self.seconds = 0.0
        self.message = ""

    def once(self, index: int) -> None:
        """One call on fresh tensors; the first one is also differentiated."""
        executor, header = self.executor, self.header
        executor.state.restore(content_seed(executor.seed + index, self.tensors))
        arguments = Arguments(header, self.tensors, executor.device)
        values = {n: v for n, v in arguments.values.items() if n not in self.unknown}
        poison(list(arguments.given.values()))
        start = clock()
        with torch_mode(header.get("mode") or "grad"):
            output = check_output(executor._run(self.function, **values), MAX_GRADED_BYTES)
        self.seconds += clock() - start
        self.outputs.append(output)
        self.copies.append(output.detach().resolve_conj().resolve_neg().clone())
        if index == 0 and header.get("wrt"):
            self._differentiate(output, arguments)
        self._note(self.modified, arguments.modified())
        self._note(self.aliased, arguments.aliased(output))

    @staticmethod
    def _note(names: list[str], more: Sequence[str]) -> None:
        names.extend(n for n in more if n not in names)

    def _differentiate(self, output: Any, arguments: Arguments) -> None:
        """Backward once or twice over the same graph; `passes` holds the gradients of each."""
        count = max(1, int(self.header.get("backward_passes") or 1))
        none = dict.fromkeys(self.header["wrt"])
        cotangent = self.tensors.get(self.header.get("cotangent") or "")
        if cotangent is not None and cotangent.shape != output.shape:
            self.message = f"the output has the shape {tuple(output.shape)}: no gradient was taken"
            cotangent = None
        if cotangent is None or not output.requires_grad:
            self.passes = [dict(none) for _ in range(count)]
            return
        cotangent = cotangent.to(device=output.device, dtype=output.dtype)
        for index in range(count):
            arguments.forget_gradients()
            self.executor.backward(output, cotangent, retain=index + 1 < count)
            self.passes.append(arguments.gradients())

    def _overwritten(self) -> bool:
        """Did a later call change an earlier output, or do two outputs share memory?"""
        if len(self.outputs) < 2:
            return False
        if any(not same_bits(o, c) for o, c in zip(self.outputs, self.copies, strict=False)):
            return True
        pairs = [(a, b) for i, a in enumerate(self.outputs) for b in self.outputs[i + 1 :]]
        return any(share_memory(a, b) for a, b in pairs)

    def answer(self) -> tuple[Header, dict[str, Any]]:
        sent: dict[str, Any] = {f"o{i}": c for i, c in enumerate(self.copies)}
        reply: Header = {
            "outcome": "passed",
            "message": self.message,
            "outputs": list(sent),
            "dtype": dtype_name(self.outputs[0].dtype),
            "device": str(self.outputs[0].device),
            "modified": self.modified,
            "aliased": self.aliased,
            "overwritten": self._overwritten(),
            "seconds": self.seconds,
        }
        for key, gradients in zip(("gradients", "second_gradients"), self.passes, strict=False):
            reply[key] = references(key[0], gradients, sent)
        return reply, sent


def content_seed(seed: int, tensors: dict[str, Any]) -> int:
    """A seed for the generators of one call: another one for other inputs and repetitions.

    A candidate that leaves something to chance then meets different luck, and the same question
    still gets the same answer in whatever order it is asked.
    """
    for name in sorted(tensors):
        numbers = tensors[name].detach().reshape(-1)
        if numbers.numel():
            seed = zlib.crc32(numbers.view(torch.uint8).numpy(), seed & 0xFFFFFFFF)
    return seed & 0x7FFFFFFF


def references(letter: str, tensors: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """Adds `tensors` to `sent` under short names; name -> short name, None stays None."""
    named: dict[str, Any] = {}
    for index, (name, tensor) in enumerate(tensors.items()):
        named[name] = None
        if tensor is not None:
            named[name] = f"{letter}{index}"
            sent[named[name]] = tensor
    return named


class _ModuleRun:
    """One life of a module: constructed, loaded, converted, run, differentiated, trained."""

    def __init__(self, executor: Executor, header: Header, tensors: dict[str, Any]) -> None:
        self.executor = executor
        self.header = header
        self.tensors = tensors
        self.facts: Header = {}

    def answer(self) -> tuple[Header, dict[str, Any]]:
        header, executor = self.header, self.executor
        executor.state.restore(int(header.get("seed") or 0))
        start = clock()
        module = self._construct()
        sent: dict[str, Any] = {}
        reply: Header = {"outcome": "passed", "message": "", "module": self.facts}
        if module is None:
            return reply, sent
        try:
            self._prepare(module)
            self._describe(module)
            if header.get("inputs"):
                self._forward(module, reply, sent)
            if header.get("steps"):
                self.facts["losses"] = self._train(module, int(header["steps"]))
        except Answer as answer:
            answer.more = {"module": self.facts}  # type: ignore[attr-defined]
            raise
        if header.get("return_state"):
            state = {k: v for k, v in module.state_dict().items() if sendable(v)}
            reply["state"] = references("s", state, sent)
        reply["seconds"] = clock() - start
        return reply, sent

    def _construct(self) -> Any:
        """The module that is asked for; None when only its constructor's signature is."""
        executor, name = self.executor, self.header["class_name"]
        kind = self._kind(name)
        parameters = executor._parameters(kind)
        self.facts["constructor"] = [bounded(p, 100) for p in list(parameters or {})[:100]]
        if parameters is not None:
            self.facts["signature"] = signature_facts(parameters)
        if self.header.get("signature_only"):
            return None
        try:
            keywords = dict(self.header.get("constructor") or {})
            module = self._made(name, kind, keywords)
        except Answer as answer:
            answer.more = {"module": self.facts}  # type: ignore[attr-defined]
            raise
        if not isinstance(module, torch.nn.Module):
            raise Answer("failed", f"{name} is not a torch.nn.Module")
        return module if "device" in keywords else module.to(executor.device)

    def _kind(self, name: str) -> Any:
        kind = self.executor._run(self.executor._find_class, name)
        if kind is None:
            raise Answer("not implemented", f"no class named {name} was found")
        return kind

    def _made(self, name: str, kind: Any, keywords: Header) -> Any:
        """`kind` constructed; keywords that it does not know are taken out where they are None."""
        lacking = self.executor._fit(name, kind, list(keywords))
        lacking = [n for n in lacking if keywords.pop(n) is not None]
        if lacking:
            text = f"{name} has no constructor parameter named {listed(lacking)}"
            raise Answer("not implemented", text)
        for key, value in keywords.items():
            if key == "dtype" and isinstance(value, str):
                keywords[key] = named_dtype(value)
            elif key == "device" and isinstance(value, str):
                keywords[key] = torch.device(value)
            elif isinstance(value, dict):
                inner = value["class"]
                keywords[key] = self._made(inner, self._kind(inner), dict(value["constructor"]))
        return self.executor._run(kind, **keywords)

    def _prepare(self, module: Any) -> None:
        """Loads the given state and converts."""
        state = self.header.get("state")
        if state is not None:
            given = {key: self.tensors[ref].clone() for key, ref in state.items()}
            strict = bool(self.header.get("strict", True))
            self.executor._run(module.load_state_dict, given, strict=strict)
        if self.header.get("convert"):
            self.executor._run(module.to, named_dtype(self.header["convert"]))

    def _describe(self, module: Any) -> None:
        state = module.state_dict()
        self.facts["parameters"] = [
            {**facts_of(n, p), "device": str(p.device), "requires_grad": p.requires_grad}
            for n, p in module.named_parameters()
        ]
        self.facts["buffers"] = [
            {**facts_of(n, b), "persistent": n in state} for n, b in module.named_buffers()
        ]
        self.facts["state"] = [facts_of(n, t) for n, t in state.items() if sendable(t)]
        with contextlib.suppress(TypeError, ValueError):
            self.facts["forward"] = signature_facts(inspect.signature(module.forward).parameters)

    def _arguments(self, wrt: Sequence[str] = ()) -> Arguments:
        specs = self.header["inputs"]
        named = {"input" if i == 0 else f"input{i}": spec for i, spec in enumerate(specs)}
        header = {"arguments": named, "wrt": wrt}
        return Arguments(header, self.tensors, self.executor.device)

    def _forward(self, module: Any, reply: Header, sent: dict[str, Any]) -> None:
        cotangent = self.tensors.get(self.header.get("cotangent") or "")
        first = self.tensors.get(self.header["inputs"][0].get("tensor", ""))
        floating = first is not None and first.is_floating_point()
        wrt = ("input",) if cotangent is not None and floating else ()
        arguments = self._arguments(wrt)
        poison(list(arguments.given.values()))
        values = arguments.values.values()
        output = check_output(self.executor._run(module, *values), MAX_GRADED_BYTES)
        sent["o0"] = output.detach().resolve_conj().resolve_neg().clone()
        reply.update(outputs=["o0"], dtype=dtype_name(output.dtype), device=str(output.device))
        if cotangent is not None:
            reply["gradients"] = references(
                "g", self._gradients(module, output, cotangent, arguments, reply), sent
            )
        reply["modified"] = arguments.modified()
        reply["aliased"] = arguments.aliased(output)

    def _gradients(
        self, module: Any, output: Any, cotangent: Any, arguments: Arguments, reply: Header
    ) -> dict[str, Any]:
        """Gradient of the input ("input") and of every parameter (by its name)."""
        if cotangent.shape != output.shape:
            shape = tuple(output.shape)
            reply["message"] = f"the output has the shape {shape}: no gradient was taken"
        elif output.requires_grad:
            cotangent = cotangent.to(device=output.device, dtype=output.dtype)
            self.executor.backward(output, cotangent)
        found = arguments.gradients()
        for name, parameter in module.named_parameters():
            gradient = parameter.grad
            if gradient is not None and gradient.layout is not torch.strided:
                gradient = gradient.to_dense()
            found[name] = gradient
        module.zero_grad(set_to_none=True)
        return found

    def _train(self, module: Any, steps: int) -> list[float]:
        """Steps of Adam (rate 0.01) towards a fixed random target; the loss before each, and after.

        Written out here because `torch.optim` imports half of the compiler.
        """
        parameters = [p for p in module.parameters() if p.requires_grad]
        moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
        generator = torch.Generator().manual_seed(int(self.header.get("seed") or 0) + 1)
        target, losses = None, []
        for step in range(steps + 1):
            arguments = self._arguments()
            output = check_output(self.executor._run(module, *arguments.values.values()))
            if target is None:
                target = torch.randn(output.shape, generator=generator).to(output.device)
            loss = ((output.float() - target) ** 2).mean()
            losses.append(float(loss.detach()))
            if step < steps and loss.requires_grad:
                self.executor.backward(loss, torch.ones_like(loss))
                adam_step(parameters, moments, step + 1)
                module.zero_grad(set_to_none=True)
        return losses


def adam_step(parameters: Sequence[Any], moments: Sequence[Any], step: int) -> None:
    """One step of Adam (Kingma and Ba 2015, algorithm 1) with rate 0.01."""
    with torch.no_grad():
        for parameter, (first, second) in zip(parameters, moments, strict=False):
            if parameter.grad is None:
                continue
            gradient = parameter.grad.to(parameter.dtype)
            first.mul_(0.9).add_(gradient, alpha=0.1)
            second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            scale = (second / (1 - 0.999**step)).sqrt().add_(1e-8)
            parameter.sub_(0.01 / (1 - 0.9**step) * first / scale)


def sendable(value: Any) -> bool:
    """Is this entry of a state dict a tensor that can be described and sent?"""
    return isinstance(value, torch.Tensor) and not tensor_problem(value)


def facts_of(name: str, tensor: Any) -> Header:
    return {"name": name, "shape": list(tensor.shape), "dtype": dtype_name(tensor.dtype)}


def signature_facts(parameters: Any) -> list[Header]:
    """What can be given to a function, and how; `*args` and `**kwargs` are left out."""
    return [
        {
            "name": bounded(p.name, 100),
            "required": p.default is p.empty,
            "positional": p.kind is not p.KEYWORD_ONLY,
            "keyword": p.kind is not p.POSITIONAL_ONLY,
        }
        for p in list(parameters.values())[:100]
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


# ------------------------------------------------------------------------------------------------
# What a candidate uses: recorded, never judged here


MAX_USES = 4000

#: code of the recorder itself, whose frames stand between a call and what it leads to
_recorder_codes: set[Any] = set()


def recorder(function: Any) -> Any:
    """Marks a function whose frames are not there for `Observation`."""
    _recorder_codes.add(function.__code__)
    return function


@functools.lru_cache(maxsize=1)
def torch_names() -> dict[int, str]:
    """id of a compiled function of torch -> its dotted name."""
    names: dict[int, str] = {}
    for prefix in ("_nn", "_special", "_linalg", "_VariableFunctions"):
        holder = getattr(torch._C, prefix, None)
        for name in dir(holder) if holder is not None else ():
            if not name.startswith("__"):
                names[id(getattr(holder, name))] = f"torch._C.{prefix}.{name}"
    for name, value in vars(torch.nn.functional).items():
        if names.get(id(value), "").startswith("torch._C._nn."):
            names[id(value)] = f"torch.nn.functional.{name}"
    return names


def operator_name(operator: Any) -> str:
    """aten::softmax.int -> "aten.softmax"."""
    schema = getattr(operator, "_schema", None)
    text = schema.name if schema is not None else getattr(operator, "_qualified_op_name", "")
    return str(text).replace("::", ".")


def function_name(function: Any) -> str:
    """The dotted name of a function that torch hands to a mode; empty for a mere attribute."""
    known = torch_names().get(id(function))
    if known is not None:
        return known
    if type(function).__name__ in ("OpOverload", "OpOverloadPacket"):
        return operator_name(function)
    owner = getattr(function, "__objclass__", None)
    if owner is not None:
        return f"torch.Tensor.{function.__name__}"
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    return f"{module}.{name}" if module and name else ""


def frame_name(frame: Any) -> str:
    """The dotted name of the function that a frame runs."""
    code = frame.f_code
    name = getattr(code, "co_qualname", None)  # from Python 3.11 on
    if name is None:
        name = code.co_name
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        for kind in getattr(type(owner), "__mro__", ()):
            if getattr(kind.__dict__.get(name), "__code__", None) is code:
                name = f"{kind.__qualname__}.{name}"
                break
    return f"{frame.f_globals.get('__name__', '')}.{name}"


class Observation:
    """Sees every call of torch during one call of the candidate, and where it comes from.

    `uses` maps (file, line, names) to nothing; the names lead from what the candidate's own line
    called to the operator that this came to. What the worker itself or another library calls is
    not the candidate's and left out, but for the name of that library's function.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.uses: dict[tuple[str, int, tuple[str, ...]], None] = {}
        self.truncated = False
        self.calling = ""
        self._torch = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
        self._library = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
        #: by identity: equal code objects may come from different files
        self._kinds: dict[int, tuple[Any, str]] = {}

    # -- where a call comes from -----------------------------------------------------------------

    def _kind(self, frame: Any) -> str:
        """Whose code a frame runs: "own" (the candidate's), "ours", "torch", "other", "neutral"."""
        code = frame.f_code
        known = self._kinds.get(id(code))
        if known is None:
            known = self._kinds[id(code)] = (code, self._kind_of(code, frame.f_globals))
        return known[1]

    def _kind_of(self, code: Any, names: Any) -> str:
        if any(code is known for known in _recorder_codes):
            return "neutral"
        if names is globals():
            return "ours"
        file = code.co_filename
        if inside(file, self.root):
            return "own"
        if file.startswith("<"):
            return "neutral"
        real = os.path.realpath(file)
        if real.startswith(self._torch):
            return "torch"
        installed = "site-packages" in real or "dist-packages" in real
        if real.startswith(self._library) and not installed:
            return "neutral"
        return "other"

    def _site(self) -> tuple[str, int, list[str]] | None:
        """File and line of the candidate's nearest frame, and what lies between it and here.

        The names begin at the candidate. File "" is the worker on the candidate's behalf.
        """
        chain: list[str] = []
        frame: Any = sys._getframe(2)
        while frame is not None:
            kind = self._kind(frame)
            if kind == "own":
                file = os.path.relpath(os.path.realpath(frame.f_code.co_filename), self.root)
                return file, frame.f_lineno, chain[::-1]
            if kind == "ours":
                return ("", 0, chain[::-1]) if frame.f_code in on_behalf() else None
            if kind == "torch":
                chain.append(frame_name(frame))
            elif kind == "other":
                chain = [frame_name(frame)]  # what it does below is its own affair
            frame = frame.f_back
        return None

    # -- what is noted ---------------------------------------------------------------------------

    @recorder
    def note(self, name: str) -> None:
        """A function of torch was called from Python."""
        site = self._site()
        if site is not None:
            file, line, chain = site
            self._add(file, line, [*chain, name])

    @recorder
    def note_operator(self, operator: Any) -> None:
        """An operator was reached, by whatever way; those of backward have no candidate's frame."""
        site = self._site()
        if site is not None and site[0]:
            file, line, chain = site
            between = [self.calling] if self.calling else []
            self._add(file, line, [*chain, *between, operator_name(operator)])

    @recorder
    def note_construction(self, module: Any) -> None:
        """A module was constructed whose class is torch's or derives from one of torch's."""
        kind: Any = next(k for k in type(module).__mro__ if k.__module__.startswith("torch."))
        if kind is torch.nn.Module:
            return
        site = self._site()
        if site is None:
            return
        file, line, chain = site
        if not file:
            file, line = self._class_place(type(module))
        self._add(file, line, [*chain, f"{kind.__module__}.{kind.__qualname__}"])

    def _class_place(self, kind: Any) -> tuple[str, int]:
        with contextlib.suppress(Exception):
            file = cast(str, inspect.getsourcefile(kind))
            if inside(file, self.root):
                line = inspect.getsourcelines(kind)[1]
                return os.path.relpath(os.path.realpath(file), self.root), line
        return "", 0

    def _add(self, file: str, line: int, names: Sequence[str]) -> None:
        key = (file, line, tuple(bounded(name, 200) for name in names if name))
        if key not in self.uses:
            if len(self.uses) >= MAX_USES:
                self.truncated = True
            else:
                self.uses[key] = None

    # -- on and off ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Everything that this thread does inside is seen. Compiled functions run uncompiled."""
        functions, operators = observing_modes()
        plain = torch.nn.Module.__init__

        def constructed(module: Any, *args: Any, **kwargs: Any) -> None:
            self.note_construction(module)
            plain(module, *args, **kwargs)

        torch.nn.Module.__init__ = recorder(constructed)  # type: ignore[method-assign]
        try:
            with uncompiled(), operators(self), functions(self):
                yield
        finally:
            torch.nn.Module.__init__ = plain  # type: ignore[method-assign]

    def files(self) -> list[str]:
        """The candidate's own files that are loaded by now."""
        found = set()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and inside(file, self.root):
                found.add(os.path.relpath(os.path.realpath(file), self.root))
        return sorted(found)[:MAX_USES]


@functools.lru_cache(maxsize=1)
def on_behalf() -> frozenset[Any]:
    """Code of the worker that calls what the candidate has named, rather than for itself."""
    makers = (function_adapter, class_adapter)
    inner = [c for m in makers for c in m.__code__.co_consts if isinstance(c, types.CodeType)]
    return frozenset([Executor._run.__code__, construct.__code__, *inner])


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """torch.compile steps aside, and what it has compiled stays as it is."""
    if "torch._dynamo" not in sys.modules or not hasattr(torch.compiler, "set_stance"):
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@functools.lru_cache(maxsize=1)
def observing_modes() -> tuple[Any, Any]:
    """The two modes by which torch tells what it is asked to do: functions, and operators."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __init__(self, observation: Observation) -> None:
            super().__init__()
            self.observation = observation

        @recorder
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen, given = self.observation, dict(kwargs or {})
            if type(func).__name__ == "method-wrapper":  # an attribute such as x.shape
                return func(*args, **given)
            if func is torch.Tensor.backward:
                # the candidate's own backward functions run in here
                if "gradient" in given:
                    given["grad_tensors"] = given.pop("gradient")
                with self:
                    return torch.autograd.backward(*args, **given)
            name = function_name(func)
            seen.note(name)
            before, seen.calling = seen.calling, name
            try:
                return func(*args, **given)
            finally:
                seen.calling = before

    class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self, observation: Observation) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.observation = observation

        @recorder
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.observation.note_operator(func)
            return func(*args, **(kwargs or {}))

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """No need: `uncompiled` sees to it, and torch would import its whole compiler."""
            return False

    return Functions, Operators


# ------------------------------------------------------------------------------------------------
# Imports: what a candidate may find, and what stands in for what is not there


class HarnessHidden:
    """First in `sys.meta_path`: the harness's own packages do not exist for a candidate.

    A candidate's own package of the same name is found as ever.  That the candidate has reached for
    the harness, by an import or by one of its files, is kept (`taken`, `seen`): who delegates to
    the reference implementation shall be told so and not only that something is missing.
    """

    NAMES = ("conformance", "reference_impl")

    def __init__(self, own: Sequence[str], root: str, stand_ins: Any) -> None:
        self._own = tuple(os.path.realpath(path) for path in own)
        self._names = tuple(os.path.basename(path) for path in self._own)
        self._libraries = tuple(
            os.path.realpath(folder) + os.sep for folder in {sys.prefix, sys.base_prefix}
        )
        self._root = root
        self._stand_ins = stand_ins
        self._attempts: list[str] = []
        #: all of them, for a notice
        self.seen: list[str] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if path is not None or name not in self.NAMES:
            return None
        if name in self._stand_ins.names:
            return self._stand_ins.find_spec(name)
        for entry in sys.path:
            spec = importlib.machinery.PathFinder.find_spec(name, [entry])
            if spec is not None and not self._ours(spec):
                return spec
        self._note(name)
        text = f"No module named '{name}' (the harness's own is not there for a candidate)"
        raise ModuleNotFoundError(text, name=name)

    def _ours(self, spec: Any) -> bool:
        places = [spec.origin or "", *(spec.submodule_search_locations or [])]
        return any(self._inside(place) for place in places if place)

    def _inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(real == own or real.startswith(own + os.sep) for own in self._own)

    # -- what was tried ----------------------------------------------------------------------------

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """A hook for `sys.addaudithook`: files of the harness that are opened by their path."""
        if event not in ("open", "os.listdir", "os.scandir"):
            return
        path = arguments[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return
        named = any(name in path for name in self._names)
        if (named or not path.startswith(self._libraries)) and self._inside(path):
            self._note(self._name_of(path))
            raise FileNotFoundError(errno.ENOENT, "not there for a candidate", path)

    def _name_of(self, path: str) -> str:
        """A file of the harness as seen from the folder that holds the harness."""
        real = os.path.realpath(path)
        own = next(o for o in self._own if real == o or real.startswith(o + os.sep))
        return os.path.relpath(real, os.path.dirname(own))

    def _note(self, what: str) -> None:
        text = delegation(what, self._caller())
        if text not in self.seen:
            self.seen[100:] = []
            self.seen.append(text)
        self._attempts[100:] = []
        self._attempts.append(text)

    def _caller(self) -> str:
        """File and line of the candidate's that is running now; "" if there is none."""
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if self._root and inside(file, self._root):
                return (
                    f"{os.path.relpath(os.path.realpath(file), self._root)}, line {frame.f_lineno}"
                )
            frame = frame.f_back  # type: ignore[assignment]
        return ""

    def taken(self) -> str:
        """The first attempt since the last time this was asked; "" if there was none."""
        attempts, self._attempts = self._attempts, []
        return attempts[0] if attempts else ""


def delegation(what: str, where: str = "") -> str:
    """The sentence on a candidate that wants the suite to do its work."""
    own = "reference implementation" if what.startswith("reference_impl") else "code"
    place = f" at {where}" if where else ""
    return f"uses the suite's own {own} ({what}){place}, which is no work of the candidate's"


class ImportWatch:
    """Tells the judge, once per call, that the candidate has begun to import something."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._armed = False

    def arm(self, on: bool) -> None:
        self._armed = on

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self._armed:
            self._armed = False
            self._notify()
        return None


#: packages whose decorators only check or measure: without them the function is what it was
TRANSPARENT = ("jaxtyping", "beartype", "typeguard", "line_profiler", "memory_profiler")


class StandIn:
    """Takes the place of anything that could not be imported, `reason` says why.

    It can be subscripted, joined with `|`, subclassed, and passed around, as annotations,
    decorators and base classes are while a module is imported.  Called for real it raises
    `Missing`, so that only what needs it suffers.
    """

    def __init__(self, reason: str, name: str, error: type[Missing] = Missing) -> None:
        self._stand_in = (reason, name, error)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reason, own, error = self._stand_in
        return StandIn(reason, own + "." + name, error)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __iter__(self) -> Any:
        reason, _, error = self._stand_in
        raise error(reason)

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __mro_entries__(self, bases: Any) -> Any:
        reason, name, error = self._stand_in
        return (missing_class(reason, name.rpartition(".")[2], error),)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        reason, name, error = self._stand_in
        if not module_body_running():
            raise error(reason)
        decorated = args[0] if len(args) == 1 and not kwargs else None
        transparent = name.partition(".")[0] in TRANSPARENT
        if transparent and isinstance(decorated, (type, types.FunctionType)):
            return decorated
        return StandIn(reason, name + "()", error)


def missing_class(reason: str, name: str, error: type[Missing] = Missing) -> type:
    """A base class in the place of one that is not installed: subclasses cannot be constructed."""

    def construct(cls: Any, *args: Any, **kwargs: Any) -> Any:
        raise error(reason)

    def subclassed(cls: Any, /, **kwargs: Any) -> None:
        return None

    body = {"__new__": construct, "__init_subclass__": classmethod(subclassed)}
    return type(name or "Missing", (), body)


def module_body_running() -> bool:
    """Is some module of the candidate being imported right now (rather than a function called)?"""
    frame = sys._getframe(2)
    while frame is not None:
        ours = frame.f_globals is globals()
        if ours and frame.f_code.co_name != "__call__":
            return False  # what called the candidate, or imports it
        if not ours and frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class StandInModule(types.ModuleType):
    """A package that is not installed, as far as an import statement can tell."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in_for(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return stand_in_for(self.__name__)(*args, **kwargs)


def stand_in_for(name: str) -> StandIn:
    """What stands in for `package.module.name`."""
    top = name.partition(".")[0]
    if top in HarnessHidden.NAMES:
        return StandIn(delegation(name), name, Delegated)
    return StandIn(not_installed(top), name)


class StandInFinder:
    """Last in `sys.meta_path`: makes a `StandInModule` for the packages it was told about."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == n or name.startswith(n + ".") for n in self.names):
            return importlib.machinery.ModuleSpec(name, cast(Any, self), is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        return StandInModule(spec.name)

    def exec_module(self, module: Any) -> None:
        return None


def standard_modules() -> Any:
    """Names of the standard library's modules."""
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return names
    folder = sysconfig.get_paths()["stdlib"]
    return {*sys.builtin_module_names, *(entry.partition(".")[0] for entry in os.listdir(folder))}


# ------------------------------------------------------------------------------------------------
# Loading


class LoadFailure(Exception):
    """The candidate cannot be loaded; `usage`: on account of an option, not of the candidate."""

    def __init__(self, message: str, traceback: str = "", *, usage: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.traceback = traceback
        self.usage = usage


CLASS_NAMES = (
    "Linear",
    "Embedding",
    "RMSNorm",
    "SwiGLU",
    "RotaryPositionalEmbedding",
    "MultiheadSelfAttention",
    "TransformerBlock",
    "TransformerLM",
)


class Loader:
    """Imports a submission as `resolve` has described it."""

    def __init__(self, config: Header, watch: ImportWatch | None = None) -> None:
        self.config = config
        self.root: str = os.path.realpath(config["root"])
        self.adapters: str | None = config.get("adapters")
        self.search_path: list[str] = list(config.get("search_path") or ())
        self.stand_ins = StandInFinder()
        self.watch = watch
        self.notices: list[str] = []
        self.module: Any = None
        self._spared: dict[int, tuple[list[str], str]] = {}
        self._classes: dict[str, Any] = {}
        own = config.get("own_packages")
        self.harness = HarnessHidden(own, self.root, self.stand_ins) if own else None

    # -- the path --------------------------------------------------------------------------------

    def prepare_path(self) -> None:
        """Puts the submission's folders on `sys.path` and takes the harness's own off."""
        self._before = list(sys.path), list(sys.meta_path), sys.dont_write_bytecode, os.getcwd()
        keep = {os.path.realpath(p) for p in self.search_path}
        hidden = {os.path.realpath(p) for p in self.config.get("hidden") or ()}
        sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") not in hidden - keep]
        sys.path[:0] = self.search_path
        sys.path.append(self._write_distributions())
        sys.meta_path[:] = [*self._first_finders(), *sys.meta_path, cast(Any, self.stand_ins)]
        sys.dont_write_bytecode = True
        os.chdir(self.config.get("workdir") or self.root)
        importlib.invalidate_caches()

    def _first_finders(self) -> list[Any]:
        hidden = [self.harness] if self.harness is not None else []
        return [self.watch, *hidden] if self.watch is not None else hidden

    def restore_path(self) -> None:
        """Undoes `prepare_path`, for a candidate that shares a process with others."""
        sys.path[:], sys.meta_path[:], sys.dont_write_bytecode, folder = self._before
        os.chdir(folder)

    def _write_distributions(self) -> str:
        """A folder that makes `importlib.metadata` know the submission, which nobody installed.

        It is the last on the path: what is really installed comes first.
        """
        folder = os.path.join(self.config["scratch"], "distributions")
        for name, version in self.config.get("distributions") or ():
            stem = name.replace("-", "_").replace(os.sep, "_")
            place = os.path.join(folder, f"{stem}-{version}.dist-info")
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, "METADATA"), "w", encoding="utf-8") as file:
                file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return folder

    # -- importing -------------------------------------------------------------------------------

    def load(self) -> dict[str, Callable[..., Any]]:
        """Imports the adapters module, or the classes found; name -> adapter function."""
        if self.adapters is None:
            return self._load_classes()
        self.module = self._patiently(self._import_adapters, self.adapters)
        found = {}
        for name, value in vars(self.module).items():
            if name.startswith("run_") and callable(value):
                found[name] = value
        return found

    def _patiently(self, work: Callable[..., Any], *args: Any) -> Any:
        """Runs an import; a missing package gets a stand-in, anything else is a LoadFailure."""
        for _ in range(50):
            try:
                return work(*args)
            except BaseException as error:
                missing = isinstance(error, ModuleNotFoundError) and self.adopt(error)
                if not (missing or self._spare(error)):
                    raise self._failure(error) from None
        raise LoadFailure("one missing package after another")

    def _spare(self, error: BaseException) -> bool:
        """Leaves the failing import away if no function of the contract needs what it brings.

        A tokenizer that cannot be imported shall not take the model down with it.
        """
        if self.adapters is None or isinstance(error, KeyboardInterrupt):
            return False
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != self.adapters:
            trace = trace.tb_next
        if trace is None:
            return False
        for node in spare_imports(read_tree(self.adapters), self.config.get("contract") or ()):
            last = node.end_lineno or node.lineno
            if node.lineno <= trace.tb_lineno <= last and node.lineno not in self._spared:
                self._leave_out(node, error)
                return True
        return False

    def _leave_out(self, node: Any, error: BaseException) -> None:
        where = f"{os.path.relpath(cast(str, self.adapters), self.root)}, line {node.lineno}"
        names = bound_names(node)
        why = f"{place(error, self.root)}: {self.explain(error)}".lstrip(": ")
        reason = f"needs {listed(names)}, whose import failed ({why})"
        self._spared[node.lineno] = (names, reason)
        self.notices.append(f"left out the import of {listed(names)} in {where}: {why}")

    def _import_adapters(self, file: str) -> Any:
        """Executes the adapters file under its dotted name, inside its packages."""
        parts = self.config["module"].split(".")
        folder = os.path.dirname(os.path.abspath(file))
        folders = [folder]
        for _ in parts[:-2]:
            folders.insert(0, os.path.dirname(folders[0]))
        if parts[0] in sys.modules and not self._is_ours(sys.modules[parts[0]]):
            parts[0] = "candidate_" + parts[0]
        for depth in range(1, len(parts)):
            self._import_package(".".join(parts[:depth]), folders[depth - 1])
        return import_file(".".join(parts), file, without=self._spared)

    def _import_package(self, name: str, folder: str) -> None:
        """Imports the folder as the package `name`, whether it has an `__init__.py` or not.

        The import system would prefer any installed `tests` package over a folder without one.
        """
        if name in sys.modules:
            return
        init = os.path.join(folder, "__init__.py")
        if os.path.isfile(init):
            import_file(name, init, [folder])
            return
        package = types.ModuleType(name)
        package.__path__ = [folder]
        package.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        package.__spec__.submodule_search_locations = [folder]
        sys.modules[name] = package

    def _load_classes(self) -> dict[str, Callable[..., Any]]:
        """Imports the modules of the classes and functions that were found and adapts them."""
        failures = []
        for name in self.config.get("found") or {}:
            try:
                self._classes[name] = self._patiently(self._located, name)
            except LoadFailure as failure:
                failures.append(failure)
                self.notices.append(f"{name} is left out: {failure.message}")
        if failures and not self._classes:
            raise failures[0]
        return adapted_functions(self._classes)

    def _located(self, name: str) -> Any:
        """The object that conformance.toml or the search of the source files names."""
        table = {**(self.config.get("found") or {}), **(self.config.get("modules") or {})}
        module, _, attribute = table[name].partition(":")
        value: Any = importlib.import_module(module)
        for part in (attribute or name).split("."):
            value = getattr(value, part)
        return value

    # -- classes ---------------------------------------------------------------------------------

    def find_class(self, name: str) -> Any:
        """The candidate's class for `name`, or None.  May import, and so raise anything."""
        if name not in self._classes:
            self._classes[name] = self._search_class(name)
        return self._classes[name]

    def _search_class(self, name: str) -> Any:
        if name in (self.config.get("modules") or {}):
            return self._located(name)
        for module in [self.module] if self.module is not None else []:
            value = class_in(module, name, self._is_own_class)
            if value is not None:
                return value
        if name in (self.config.get("found") or {}):
            return self._located(name)
        for module in self._own_modules():
            value = class_in(module, name, self._is_own_class)
            if value is not None:
                return value
        return None

    def _own_modules(self) -> list[Any]:
        return [module for module in list(sys.modules.values()) if self._is_ours(module)]

    def class_names(self) -> dict[str, str]:
        """Name in the specification -> "package.module:Class", as far as known now."""
        table = {**(self.config.get("found") or {}), **(self.config.get("modules") or {})}
        known = {name: place for name, place in table.items() if name[:1].isupper()}
        for name in CLASS_NAMES:
            if name not in known:
                with contextlib.suppress(Exception):
                    kind = self._search_class(name)
                    if kind is not None:
                        known[name] = f"{kind.__module__}:{kind.__qualname__}"
        return known

    def _is_ours(self, module: Any) -> bool:
        """Does this module come from the submission's files?"""
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and inside(file, self.root)

    def _is_own_class(self, value: Any) -> bool:
        return self._is_ours(sys.modules.get(getattr(value, "__module__", ""), None))

    # -- what is missing -------------------------------------------------------------------------

    def adopt(self, error: ImportError) -> bool:
        """Puts a stand-in for the missing module of `error` in place; False when it should not.

        Only for packages of others.  The submission's own modules and the standard library have
        to be there.
        """
        name = error.name
        if not name or isinstance(error, Missing) or self.config.get("ours"):
            return False
        top = name.partition(".")[0]
        if self.harness is not None and top in HarnessHidden.NAMES:
            return self._adopt_harness(top)
        if top in HarnessHidden.NAMES or top in standard_modules() or self._own_place(top):
            return False
        if top in sys.modules or importlib.util.find_spec(top) is not None:
            return False
        self.stand_ins.names.append(top)
        self.notices.append(f"stood in for the missing package {top}")
        return True

    def _adopt_harness(self, top: str) -> bool:
        """Lets the rest be graded: what is really used of the harness says so when it is called."""
        if top in self.stand_ins.names or self._own_place(top):
            return False
        self.stand_ins.names.append(top)
        return True

    def _own_place(self, top: str) -> bool:
        """Is there a file or folder of this name, in whatever case, among the submission's?"""
        wanted = top.lower()
        for folder in self.search_path:
            with contextlib.suppress(OSError):
                for entry in os.listdir(folder):
                    stem, extension = os.path.splitext(entry)
                    if stem.lower() != wanted or extension not in ("", ".py"):
                        continue
                    if extension == ".py" or holds_python(os.path.join(folder, entry)):
                        return True
        return False

    def explain(self, error: BaseException) -> str:
        """`exception_text`, with a hint where only upper and lower case differ."""
        text = exception_text(error)
        if isinstance(error, ModuleNotFoundError) and error.name:
            text += self._case_hint(error.name)
        return text

    def _case_hint(self, name: str) -> str:
        """Looks for the module `name` among the submission's files without regard to case."""
        for folder in self.search_path:
            current = folder
            for part in name.split("."):
                entries = os.listdir(current) if os.path.isdir(current) else []
                if part in entries or part + ".py" in entries:
                    current = os.path.join(current, part)
                    continue
                for entry in entries:
                    if entry.lower() in (part.lower(), part.lower() + ".py"):
                        return (
                            f" (the file is called '{entry}': upper and lower case have to agree, "
                            "though some systems do not mind)"
                        )
                break
        return ""

    def _failure(self, error: BaseException) -> LoadFailure:
        """What an exception during the import means, in one sentence."""
        what = os.path.relpath(self.adapters or self.root, self.root)
        trace = candidate_traceback(error, self.root)
        where = place(error, self.root)
        if isinstance(error, SystemExit):
            text = f"{where or what} calls exit({error.code}) while it is imported"
        elif isinstance(error, SyntaxError):
            version = "{}.{}".format(*sys.version_info[:2])
            text = f"{where}: {type(error).__name__}: {bounded(str(error.msg), 300)}"
            text += f" (read by Python {version}; --python chooses another)"
        elif isinstance(error, ModuleNotFoundError) and self.config.get("ours"):
            text = f"{what} {not_installed(str(error.name))}"
        elif self.harness is not None and self.harness.seen:
            text = f"{what} {self.harness.seen[-1]}"
        elif out_of_memory(error):
            text = (
                f"{where or what} runs out of memory while it is imported: {exception_text(error)}"
            )
        else:
            text = "importing {} failed{}: {}".format(
                what,
                " at " + where if where else "",
                self.explain(error),
            )
            if self.stand_ins.names:  # more often than not they are the reason
                text += f" (not installed here: {', '.join(self.stand_ins.names)})"
        return LoadFailure(text, trace)


def read_tree(file: str) -> ast.Module:
    with open(file, "rb") as stream:
        return ast.parse(stream.read(), file)


def bound_names(node: Any) -> list[str]:
    """Names that an import statement gives to what it imports."""
    return [a.asname or a.name.partition(".")[0] for a in node.names]


def spare_imports(tree: ast.Module, contract: Sequence[str]) -> list[Any]:
    """Import statements at the top of an adapters file that no function of the contract can need.

    Only what other adapter functions (`run_...`, `get_...`) use alone is spare; helpers, classes
    and statements of the module count as needed.
    """
    imports, needed = [], set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
            continue
        name = node.name if isinstance(node, ast.FunctionDef) else ""
        if name.startswith(("run_", "get_")) and name not in contract:
            continue
        needed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return [n for n in imports if not {"*", *needed} & set(bound_names(n))]


def import_file(
    name: str,
    file: str,
    folders: list[str] | None = None,
    without: dict[int, tuple[list[str], str]] | None = None,
) -> Any:
    """Executes `file` as the module `name`; on failure no trace of it stays.

    `without`: line of an import statement to leave away -> the names it would bind, and why.
    """
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        if without:
            execute_without(module, file, without)
        else:
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return sys.modules[name]


def execute_without(module: Any, file: str, without: dict[int, tuple[list[str], str]]) -> None:
    """Executes `file` in `module`, with stand-ins for what some import statements would bind."""
    tree = read_tree(file)
    for names, reason in without.values():
        vars(module).update({n: StandIn(reason, n) for n in names})
    tree.body = [n for n in tree.body if n.lineno not in without]
    exec(compile(tree, file, "exec", dont_inherit=True), vars(module))


def holds_python(folder: str) -> bool:
    """Is there a Python file in this folder or one below?"""
    return any(any(file.endswith(".py") for file in files) for _, _, files in os.walk(folder))


def class_in(module: Any, name: str, own: Callable[[Any], bool]) -> Any:
    """The candidate's own class called `name` in `module`, in upper or lower case."""
    wanted = name.lower()
    namespace = getattr(module, "__dict__", {})
    for key in [name, *(k for k in list(namespace) if isinstance(k, str) and k.lower() == wanted)]:
        value = namespace.get(key)
        if isinstance(value, type) and own(value):
            return value
    return None


# ------------------------------------------------------------------------------------------------
# Classes without an adapters module

#: other names of a constructor's parameter that are common
SYNONYMS = {
    "in_features": ("d_in", "in_dim", "input_dim"),
    "out_features": ("d_out", "out_dim", "output_dim"),
    "num_embeddings": ("vocab_size",),
    "embedding_dim": ("d_model",),
    "vocab_size": ("n_vocab", "num_embeddings"),
    "d_model": ("dim", "hidden_size", "embed_dim", "n_embd", "model_dim", "hidden_dim"),
    "d_ff": ("ff_dim", "intermediate_size", "ffn_dim", "dim_ff", "d_ffn", "hidden_dim"),
    "num_heads": ("n_heads", "n_head", "num_attention_heads"),
    "num_layers": ("n_layers", "n_layer", "num_blocks", "num_hidden_layers"),
    "max_seq_len": (
        *("context_length", "max_seq_length", "max_context_length", "max_sequence_length"),
        *("max_len", "seq_len", "block_size"),
    ),
    "context_length": (
        *("max_seq_len", "max_seq_length", "max_context_length", "max_sequence_length"),
        *("max_len", "seq_len", "block_size"),
    ),
    "theta": ("rope_theta", "base", "rope_base"),
    "rope_theta": ("theta", "base", "rope_base"),
    "d_k": ("head_dim", "dim"),
    "eps": ("epsilon",),
}

#: adapter function: class, constructor parameter -> argument, state-dict key -> argument, inputs
RECIPES: dict[str, tuple[str, dict[str, str], Any, tuple[str, ...]]] = {
    "run_linear": (
        "Linear",
        {"in_features": "d_in", "out_features": "d_out"},
        {"weight": "weights"},
        ("in_features",),
    ),
    "run_embedding": (
        "Embedding",
        {"num_embeddings": "vocab_size", "embedding_dim": "d_model"},
        {"weight": "weights"},
        ("token_ids",),
    ),
    "run_rmsnorm": (
        "RMSNorm",
        {"d_model": "d_model", "eps": "eps"},
        {"weight": "weights"},
        ("in_features",),
    ),
    "run_swiglu": (
        "SwiGLU",
        {"d_model": "d_model", "d_ff": "d_ff"},
        {"w1.weight": "w1_weight", "w2.weight": "w2_weight", "w3.weight": "w3_weight"},
        ("in_features",),
    ),
    "run_rope": (
        "RotaryPositionalEmbedding",
        {"theta": "theta", "d_k": "d_k", "max_seq_len": "max_seq_len"},
        {},
        ("in_query_or_key", "token_positions"),
    ),
    "run_multihead_self_attention": (
        "MultiheadSelfAttention",
        {"d_model": "d_model", "num_heads": "num_heads"},
        {
            "q_proj.weight": "q_proj_weight",
            "k_proj.weight": "k_proj_weight",
            "v_proj.weight": "v_proj_weight",
            "output_proj.weight": "o_proj_weight",
        },
        ("in_features",),
    ),
    "run_multihead_self_attention_with_rope": (
        "MultiheadSelfAttention",
        {
            "d_model": "d_model",
            "num_heads": "num_heads",
            "max_seq_len": "max_seq_len",
            "theta": "theta",
        },
        {
            "q_proj.weight": "q_proj_weight",
            "k_proj.weight": "k_proj_weight",
            "v_proj.weight": "v_proj_weight",
            "output_proj.weight": "o_proj_weight",
        },
        ("in_features", "token_positions"),
    ),
    "run_transformer_block": (
        "TransformerBlock",
        {n: n for n in ("d_model", "num_heads", "d_ff", "max_seq_len", "theta")},
        "weights",
        ("in_features",),
    ),
    "run_transformer_lm": (
        "TransformerLM",
        {
            n: n
            for n in (
                "vocab_size",
                "context_length",
                "d_model",
                "num_layers",
                "num_heads",
                "d_ff",
                "rope_theta",
            )
        },
        "weights",
        ("in_indices",),
    ),
}

#: adapter function: plain function, its arguments in the contract's names
FUNCTION_RECIPES = {
    "run_softmax": ("softmax", ("in_features", "dim")),
    "run_silu": ("silu", ("in_features",)),
    "run_scaled_dot_product_attention": (
        "scaled_dot_product_attention",
        ("Q", "K", "V", "mask"),
    ),
}


def adapted_functions(found: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Adapter functions for the classes and functions that were found by name."""
    functions: dict[str, Callable[..., Any]] = {}
    for adapter, (name, parameters, weights, inputs) in RECIPES.items():
        if name in found:
            functions[adapter] = class_adapter(found[name], parameters, weights, inputs)
    for adapter, (name, arguments) in FUNCTION_RECIPES.items():
        if name in found:
            functions[adapter] = function_adapter(found[name], arguments)
    return functions


def with_signature(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Gives `function` keyword parameters of these names, as the contract has them."""
    optional = ("mask", "token_positions")
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in optional else inspect.Parameter.empty,
            )
            for name in dict.fromkeys(names)
        ]
    )
    return function


def function_adapter(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def adapter(**given: Any) -> Any:
        values = [given.get(name) for name in names]
        while values and values[-1] is None:
            values.pop()
        return function(*values)

    return with_signature(adapter, names)


def class_adapter(
    kind: Any, parameters: dict[str, str], weights: Any, inputs: Sequence[str]
) -> Callable[..., Any]:
    """An adapter function that constructs `kind`, loads the weights and runs it."""
    names = [*parameters.values()]
    names += [weights] if isinstance(weights, str) else list(weights.values())
    names += inputs

    def adapter(**given: Any) -> Any:
        if isinstance(weights, str):
            state = dict(given[weights])
        else:
            state = {key: given[argument] for key, argument in weights.items()}
        example = next(iter(state.values()), given[inputs[0]])
        wanted = {name: given[argument] for name, argument in parameters.items()}
        module = construct(kind, wanted, example)
        load_weights(module, state)
        return module(*[given[n] for n in forward_inputs(module, inputs) if n in given])

    return with_signature(adapter, names)


def construct(kind: Any, wanted: dict[str, Any], example: Any) -> Any:
    """`kind` with the wanted parameters, under the names that its constructor uses."""
    known = inspect.signature(kind).parameters
    keywords = {}
    for name, value in wanted.items():
        choices = [n for n in (name, *SYNONYMS.get(name, ())) if n in known and n not in keywords]
        if not choices:
            raise NotImplementedError(f"{kind.__name__} has no parameter '{name}'")
        keywords[choices[0]] = value
    if "device" in known:
        keywords["device"] = example.device
    if "dtype" in known and example.is_floating_point():
        keywords["dtype"] = example.dtype
    for name, parameter in known.items():
        needed = parameter.default is parameter.empty and name not in keywords
        if needed and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise NotImplementedError(f"{kind.__name__} asks for '{name}'")
    return kind(**keywords)


def load_weights(module: Any, state: dict[str, Any]) -> None:
    """Loads by state-dict key, or into the only parameter there is."""
    if not state:
        return
    own = list(module.parameters())
    keys = set(module.state_dict())
    if len(state) == 1 and len(own) == 1 and not keys >= set(state):
        with torch.no_grad():
            own[0].copy_(next(iter(state.values())))
        return
    if "output_proj.weight" in state and "o_proj.weight" in keys:
        state["o_proj.weight"] = state.pop("output_proj.weight")
    module.load_state_dict(state, strict=True)


def forward_inputs(module: Any, inputs: Sequence[str]) -> Sequence[str]:
    """As many of the inputs as `forward` takes: attention may not want the positions."""
    try:
        known = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return inputs
    if any(p.kind is p.VAR_POSITIONAL for p in known):
        return inputs
    return inputs[: len(known)]


# ------------------------------------------------------------------------------------------------
# The process


PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36


def prctl(option: int, value: int) -> None:
    """Linux's call for settings of a process; elsewhere, and where it is refused, nothing."""
    with contextlib.suppress(OSError, AttributeError):
        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)


def keep() -> None:
    """Stays behind as the keeper of the process that returns from here; Linux only.

    What a candidate leaves behind, even in sessions of its own, becomes the keeper's child. It is
    ended with the candidate's process, and all of them when the judge's end of the pipe is closed,
    which happens whatever becomes of the judge. The keeper's exit status is that of its charge.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        return
    silent = os.open(os.devnull, os.O_RDWR)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: end_children())
    threading.Thread(target=end_children_with_judge, daemon=True).start()
    end_like(outlive(child))


def outlive(child: int) -> int:
    """Waits for `child`, then ends what it has left behind; the status it ended with."""
    status = 0
    ended = False
    while True:
        try:
            pid, state = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == child:
            status, ended = state, True
        if ended:
            end_children()


def end_children_with_judge() -> None:
    watch = select.poll()
    watch.register(0, 0)
    watch.poll()
    end_children()


def end_children() -> None:
    """Kills every process whose parent this one is."""
    own = str(os.getpid())
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
                if parent == own:
                    os.kill(int(entry), signal.SIGKILL)


def end_like(status: int) -> None:
    """Ends this process as another one has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        limit("CORE", 0)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # the first process of a namespace cannot kill itself
    os._exit(os.WEXITSTATUS(status))


#: capabilities of root that would undo the limits or reach into the judge: KILL, NET_ADMIN,
#: SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYS_BOOT, SYS_RESOURCE, SYS_TIME, PERFMON, BPF
DANGEROUS = sum(1 << bit for bit in (5, 12, 16, 17, 19, 21, 22, 24, 25, 38, 39))


def renounce() -> str:
    """Gives up for good what this process may do more than others; what was done, or ""."""
    if not sys.platform.startswith("linux"):
        return ""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    leave_keyring()
    if os.geteuid() == 0:
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            head = (ctypes.c_uint32 * 2)(0x20080522, 0)
            data = (ctypes.c_uint32 * 6)()
            if library.capget(head, data) == 0:
                for index in range(6):
                    data[index] &= ~(DANGEROUS >> (32 * (index // 3))) & 0xFFFFFFFF
                library.capset(head, data)
    return "no new privileges"


# ------------------------------------------------------------------------------------------------
# The fork server: workers that find torch imported (`forkserver.py` is the other side)


#: under which a forked worker has the file for stacks
STACKS = 3
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4


def serve_forks(number: int, user_site: str) -> None:
    """Imports torch, then forks for every request on the socket; returns in each worker.

    A request is a JSON object ("environment", "folder", how many "descriptors") that comes with
    stdin, stdout, stderr, the file for stacks, a pipe on which to tell what becomes of the process,
    and namespaces in the order in which they are to be entered. The server ends when nobody holds
    the socket any more.
    """
    import socket

    if user_site:
        site.addsitedir(user_site)
    with contextlib.suppress(BaseException):  # the worker will try again, and tell
        import_torch()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = socket.socket(fileno=number)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 64)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if len(descriptors) == request["descriptors"]:
            try:
                child = os.fork()
            except OSError:  # the worker will be started from nothing
                child = -1
            if child == 0:
                connection.close()
                enter(descriptors[5:], descriptors[4])
                become_worker(request, descriptors[:4])
                return
        for descriptor in descriptors:
            os.close(descriptor)


def enter(namespaces: Sequence[int], status: int) -> None:
    """Enters the namespaces and forks, because processes can only be born into one of their own.

    Returns in the child. The parent stays outside, out of its reach, and tells how it ended.
    """
    prctl(PR_SET_DUMPABLE, 0)
    library = ctypes.CDLL(None, use_errno=True)
    for namespace in namespaces:
        if library.setns(namespace, 0) != 0:
            os.write(status, f"failed {ctypes.get_errno()}\n".encode())
            os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        return
    os.write(status, f"started {child}\n".encode())
    os.closerange(0, status)
    os.closerange(status + 1, os.sysconf("SC_OPEN_MAX"))
    os.write(status, f"ended {os.waitpid(child, 0)[1]}\n".encode())
    os._exit(0)


def become_worker(request: Header, descriptors: Sequence[int]) -> None:
    """Makes this process what it would be if it had been started in the sandbox."""
    import fcntl

    os.setsid()
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in descriptors]
    for target, number in enumerate(high):
        os.dup2(number, target, inheritable=target != STACKS)
    os.closerange(STACKS + 1, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    head, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ctypes.CDLL(None).capset(head, none) != 0:
        os._exit(1)
    prctl(PR_SET_DUMPABLE, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # which a loss of privileges may undo
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:  # `random` does that by itself
        numbers.seed()
    # multiprocessing runs this file again, under the name by which it is found here
    sys.argv[:] = [os.path.join(request["folder"], "worker.py")]
    sys.modules["__main__"].__file__ = sys.argv[0]


#: keyctl(2) by processor, which the C library has no function for, and its request to join a
#: session keyring of one's own
KEYCTL, JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1


def leave_keyring() -> None:
    """Takes a keyring of its own: that of the session holds keys of the judge's, and would outlast
    this process."""
    number = KEYCTL.get(platform.machine())
    if number is not None:
        with contextlib.suppress(OSError, AttributeError):
            zero = ctypes.c_long(0)
            ctypes.CDLL(None).syscall(ctypes.c_long(number), JOIN_SESSION_KEYRING, zero)


def take_over_streams() -> tuple[Channel, int]:
    """Puts the judge's pipes aside; (conversation, descriptor of the pipe for what is printed)."""
    incoming, outgoing = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    printed = os.dup(2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return Channel(incoming, outgoing), printed


def follow_parent() -> None:
    """Ends this process when the judge is gone, even in the middle of a call that hangs."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="conformance-parent", daemon=True).start()


def limit(name: str, value: int, soft: int | None = None) -> bool:
    """Bounds a resource by its name in the module `resource`; False where that cannot be."""
    try:
        import resource

        which = getattr(resource, "RLIMIT_" + name)
        _, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(which, (value if soft is None else min(soft, value), value))
    except (ImportError, AttributeError, OSError, ValueError):
        return False
    return True


def limit_memory(size: int) -> str:
    """Bounds the address space to what is in use now plus `size`; what was done, or "".

    torch maps hundreds of megabytes for itself (many gigabytes in builds for GPUs), which are not
    the candidate's.  Where the present size cannot be read, the judge's watch has to do.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return ""
    return "RLIMIT_AS" if limit("AS", used + size) else ""


def limit_resources(bounds: Header) -> list[str]:
    """Sets the limits that stay as they are; words for those that are in force."""
    limit("CORE", 0)
    done = []
    if limit("FSIZE", bounds["file_bytes"]):
        done.append(f"files of at most {bounds['file_bytes'] >> 20} MiB")
    if limit("NOFILE", bounds["open_files"]):
        done.append(f"at most {bounds['open_files']} open files")
    if bounds.get("tasks") and limit("NPROC", bounds["tasks"]):
        done.append(f"at most {bounds['tasks']} processes and threads")
    if processor_time() is not None:
        done.append("processor time")
    return done


def processor_time() -> float | None:
    """Seconds of processor time that this process has had, where that can be limited."""
    try:
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime if hasattr(resource, "RLIMIT_CPU") else None
    except ImportError:
        return None


def hide_metal() -> str:
    """Makes an Apple GPU look absent; its runtime has no environment variable for that."""
    metal = getattr(torch.backends, "mps", None)
    if metal is None or not metal.is_available():
        return "GPU hidden"
    metal.is_available = lambda: False
    metal.is_built = lambda: False
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        accelerator.is_available = lambda *args, **kwargs: False
    return "GPU hidden"


def device_name(device: str) -> str:
    """A name for a report; raises LoadFailure when torch cannot use the device."""
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        text = exception_text(error)
        words = f"the device '{device}' cannot be used here: {text}"
        raise LoadFailure(words, usage=True) from None
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(torch.device(device)))
    return platform.processor() or platform.machine()


class Server:
    """The worker's side of the conversation, from the request "load" to the end."""

    def __init__(self, channel: Channel, printed: int) -> None:
        self.channel = channel
        self.printed = printed
        self.current = ""
        self.watch = ImportWatch(self._importing)
        self.executor: Executor | None = None
        self.bench: Any = None
        self.processor_seconds = 0.0

    def _importing(self) -> None:
        self.channel.send({"event": "importing", "id": self.current})

    def serve(self) -> None:
        """Answers until the judge goes away."""
        while True:
            frame = self.channel.receive()
            if frame is None:
                return
            header, body = frame
            self.current = header["id"]
            self._grant(header)
            try:
                reply, tensors = self._work(header, body)
                packed = encode_tensors(tensors) if tensors else b""
            except LoadFailure as failure:
                reply, packed = failure_reply(failure.message, failure.traceback), b""
                reply["usage"] = failure.usage
            except Exception as error:
                # our own mistake, or a candidate that has put something of its own into torch
                text = f"the worker cannot go on: {exception_text(error)}"
                reply, packed = failure_reply(text), b""
                reply["broken"] = True
            self._mark()
            reply["id"] = header["id"]
            self.channel.send(reply, packed)

    def _grant(self, header: Header) -> None:
        """Grants the processor time of one request; the system ends a process that takes more."""
        had = processor_time()
        if self.processor_seconds and had is not None:
            granted = self.processor_seconds * max(1, int(header.get("repeat") or 1))
            limit("CPU", self.config["limits"]["total_processor_seconds"], int(had + granted) + 1)

    def _work(self, header: Header, body: bytearray) -> tuple[Header, dict[str, Any]]:
        if header["op"] == "load":
            return self._load(header), {}
        if self.executor is None:
            raise LoadFailure("nothing has been loaded")
        if self.bench is not None and header["op"].startswith("bench:"):
            return self.bench.execute(header, decode_tensors(body))  # type: ignore[no-any-return]
        return self.executor.execute(header, decode_tensors(body))

    def _mark(self) -> None:
        """Tells the judge, in the stream of printed text, where this request's output ends."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with contextlib.suppress(OSError):
            os.write(self.printed, MARK + self.current.encode() + b"\0")

    def _load(self, header: Header) -> Header:
        config = self.config = header["config"]
        stacks = config.get("stacks")
        if stacks is None:
            stacks = open(os.path.join(config["scratch"], "stacks.txt"), "w")  # noqa: SIM115
        faulthandler.enable(stacks, all_threads=False)
        if hasattr(signal, "SIGUSR1"):
            faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
        if config.get("user_site"):
            site.addsitedir(config["user_site"])
        try:
            import_torch()
        except BaseException as error:
            text = exception_text(error)
            where = f"torch cannot be imported by {sys.executable}: {text}"
            raise LoadFailure(where) from None
        self.channel.send({"event": "torch", "id": self.current})
        torch.set_num_threads(config["threads"])
        device = config["device"]
        isolation = [hide_metal()] if device == "cpu" else []
        name = device_name(device)
        bounds = config["limits"]
        how = limit_memory(bounds["memory_bytes"]) if device == "cpu" else ""
        isolation += [renounce(), *limit_resources(bounds)]
        self.processor_seconds = bounds["processor_seconds"]
        self._grant(header)
        if config.get("bench"):
            self.bench = bench_of(config)
        loader = Loader(config, self.watch)
        if loader.harness is not None:
            sys.addaudithook(loader.harness.audit)
        loader.prepare_path()
        functions = loader.load()
        told = list(loader.harness.seen) if loader.harness is not None else []
        if told and not functions:
            raise LoadFailure(f"{os.path.basename(loader.adapters or loader.root)} {told[0]}")
        self.executor = Executor(
            functions,
            find_class=loader.find_class,
            device=device,
            root=loader.root,
            seed=config["seed"],
            threads=config["threads"],
            adopt=loader.adopt,
            explain=loader.explain,
            armed=self.watch.arm,
            delegated=None if loader.harness is None else loader.harness.taken,
            isolated=True,
        )
        if self.bench is not None:
            self.bench.attach(self.executor)
        return {
            "outcome": "passed",
            "functions": {n: parameter_names(f) for n, f in functions.items()},
            "classes": loader.class_names(),
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "platform": f"{platform.system()} {platform.machine()}",
            "device": device,
            "device_name": name,
            "threads": torch.get_num_threads(),
            "memory_limit": how,
            "isolation": [text for text in isolation if text],
            "notices": [*loader.notices, *(f"while it is imported, it {text}" for text in told)],
        }


def bench_of(config: Header) -> Any:
    """What answers the requests of a benchmark (`bench/runner.py`, whose text was sent).

    Made before the candidate is imported, and in no module that could be found by name.
    """
    namespace: dict[str, Any] = {"__name__": "bench"}
    exec(compile(config["bench"]["runner"], "<bench>", "exec", dont_inherit=True), namespace)
    return namespace["Bench"](config, globals())


def failure_reply(message: str, traceback: str = "") -> Header:
    return {"outcome": "failed", "message": message, "traceback": traceback}


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """Names by which `function` takes keywords; "**" at the end if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["**"]
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return named + ["**" for p in parameters if p.kind is p.VAR_KEYWORD]


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        serve_forks(int(sys.argv[2]), sys.argv[3])
    if "keep" in sys.argv[1:]:
        keep()
    channel, printed = take_over_streams()
    if hasattr(os, "getppid"):
        follow_parent()
    try:
        Server(channel, printed).serve()
    finally:
        # threads and exit handlers of the candidate must not keep the process
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
