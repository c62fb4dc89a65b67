"""The part of a benchmark that runs in the candidate's process: refresh inputs, call, read clocks.

Stand-alone like `candidate/worker.py`: its text is sent to the worker and executed there before the
candidate is imported, together with the implementations to compare with. They get no name in
`sys.modules`, and a `torch` of their own, so that what a candidate does to the module `torch` does
not reach them (methods of tensors it can still change: `honesty.py` looks for that from outside).

It decides nothing. The judge says for each sample who is called, how often and on which inputs; the
inputs follow from a number that is drawn for this one sample, so they never come twice and are
known to nobody before. What comes back are times, and on demand what the calls returned.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.machinery
import secrets
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

#: random numbers in the pool from which inputs are cut, and the places where a cut may start
POOL = 1 << 20
PLACES = 1 << 16
#: parameters of glibc's mallopt
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
#: what starting work on a GPU and waiting for it may cost beside the work
HOST_SECONDS = 1e-3
MASK = (1 << 64) - 1

#: what candidates replace who want to be measured wrongly: (module, attribute)
WATCHED = (
    *(("time", name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")),
    *(("time", name) for name in ("time", "time_ns", "process_time", "thread_time", "sleep")),
    *(("gc", name) for name in ("disable", "enable", "collect")),
    *(("torch", name) for name in ("set_num_threads", "get_num_threads", "no_grad", "matmul")),
    *(("torch.autograd", name) for name in ("backward", "grad")),
    *(("torch.cuda", name) for name in ("synchronize", "Event", "current_stream")),
    *(("torch._C.TensorBase", name) for name in ("data_ptr", "detach", "reshape")),
    *(("torch.Tensor", name) for name in ("__matmul__", "backward", "item", "tolist")),
)


# ------------------------------------------------------------------------------------------------
# Inputs that follow from a number


def cut(seed: int, index: int) -> tuple[int, float]:
    """Where in the pool tensor `index` of an input starts, and its factor (exact in 8 bits)."""
    mixed = ((seed + 1) * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    mixed ^= mixed >> 31
    return mixed % PLACES, (64 + (mixed >> 32) % 129) / 128


def pieces(size: int, place: int) -> Iterator[tuple[int, int, int]]:
    """(first, end, place in the pool) of the cuts that fill `size` entries."""
    for first in range(0, size, POOL):
        end = min(size, first + POOL)
        yield first, end, place


# ------------------------------------------------------------------------------------------------
# Implementations to compare with


class Sources:
    """Finds modules in a dict of texts while they are imported, under a name nobody can guess."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.name = f"_bench_{secrets.token_hex(8)}"
        self._texts = texts

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of one of our modules; None for any other."""
        top, _, rest = name.partition(".")
        if top != self.name or (rest or "__init__") not in self._texts:
            return None
        loader: Any = self
        return importlib.machinery.ModuleSpec(name, loader, is_package=not rest)

    def create_module(self, spec: Any) -> Any:
        """Nothing special."""
        return None

    def exec_module(self, module: Any) -> None:
        """Execute the text in the module."""
        rest = module.__name__.partition(".")[2] or "__init__"
        exec(compile(self._texts[rest], f"<{rest}>", "exec", dont_inherit=True), vars(module))


def private_modules(texts: Mapping[str, str], wanted: str) -> dict[str, Any]:
    """The functions of module `wanted` of a package given as texts, which leaves no trace behind.

    `texts`: module name (`__init__` for the package itself) -> source.
    """
    finder = Sources(texts)
    sys.meta_path.insert(0, finder)
    try:
        __import__(f"{finder.name}.{wanted}")
        ours = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == finder.name}
    finally:
        sys.meta_path.remove(finder)
    for name in ours:
        del sys.modules[name]
    frozen: dict[int, Any] = {}
    for module in ours.values():
        for name, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType) and value.__name__.startswith("torch"):
                setattr(module, name, frozen.setdefault(id(value), frozen_copy(value)))
    found = vars(ours[f"{finder.name}.{wanted}"])
    return {n: f for n, f in found.items() if n.startswith("run_") and callable(f)}


def frozen_copy(module: types.ModuleType) -> types.ModuleType:
    """A module with the same attributes, which later changes of the original do not reach."""
    copy = types.ModuleType(module.__name__)
    vars(copy).update(vars(module))
    return copy


# ------------------------------------------------------------------------------------------------
# The prepared calls


class Slot:
    """The arguments of one call, whose tensors are filled anew before each sample."""

    def __init__(self, bench: Bench, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        self._bench = bench
        self._fixed = tensors
        self._grad = bool(header["backward"])
        self.floats: list[tuple[Any, float]] = []
        self.ids: list[tuple[Any, int]] = []
        self.leaves: dict[str, Any] = {}
        self._values = {n: self._value(n, s) for n, s in header["arguments"].items()}
        self.cotangent = None
        if self._grad:
            self.cotangent = bench.empty(header["cotangent"])
            self.floats.append((self.cotangent, 1.0))

    def _value(self, name: str, spec: Mapping[str, Any]) -> Any:
        bench = self._bench
        if "dict" in spec:
            return {key: self._value(f"{name}.{key}", one) for key, one in spec["dict"].items()}
        if "float" in spec:
            tensor = bench.empty(spec["float"])
            self.floats.append((tensor, float(spec["scale"])))
            if self._grad:
                tensor.requires_grad_(True)
                self.leaves[name] = tensor
            return tensor
        if "ids" in spec:
            tensor = bench.torch.empty(spec["ids"], dtype=bench.torch.int64, device=bench.device)
            self.ids.append((tensor, int(spec["high"])))
            return tensor
        if "fixed" in spec:
            return self._fixed[spec["fixed"]].to(bench.device)
        return spec["value"]

    def arguments(self) -> dict[str, Any]:
        """Keywords for one call; dictionaries are fresh ones, their tensors are not."""
        return {n: dict(v) if isinstance(v, dict) else v for n, v in self._values.items()}

    def fill(self, seed: int) -> None:
        """New contents for every tensor; gradients of the last call are forgotten."""
        bench = self._bench
        with bench.torch.no_grad():
            for index, (tensor, scale) in enumerate(self.floats):
                place, factor = cut(seed, index)
                bench.fill(tensor, place, factor * scale)
            for index, (tensor, high) in enumerate(self.ids, len(self.floats)):
                place, _ = cut(seed, index)
                flat = tensor.view(-1)
                for first, end, at in pieces(flat.numel(), place):
                    flat[first:end] = bench.numbers[at : at + end - first] % high
        for leaf in self.leaves.values():
            leaf.grad = None


class Bench:
    """Answers the requests of a benchmark; made before the candidate is imported.

    `host` is the worker's own namespace: what it knows about tensors and exceptions is used here.
    """

    def __init__(self, config: Mapping[str, Any], host: Mapping[str, Any]) -> None:
        self.host = dict(host)
        self.torch = torch = host["torch"]
        self.device = config["device"]
        self.cuda = self.device.startswith("cuda")
        self.clock: Callable[[], float] = time.perf_counter
        self.processor: Callable[[], float] = time.process_time
        self.backward = torch.autograd.backward
        self.threads = torch.get_num_threads()
        self.contestants: dict[str, dict[str, Any]] = {
            name: private_modules(texts, wanted)
            for name, (wanted, texts) in config["bench"]["others"].items()
        }
        self._watched = list(self._present())
        keep_freed_memory()
        self.executor: Any = None
        self.slots: list[Slot] = []
        self.outputs: list[Any] = []
        self._graphs: dict[str, tuple[Any, list[Any]]] = {}

    def attach(self, executor: Any) -> None:
        """The candidate has been imported."""
        self.executor = executor
        self.contestants["candidate"] = executor.functions

    def _present(self) -> Iterator[tuple[Any, str, Any]]:
        for path, name in WATCHED:
            top, *rest = path.split(".")
            owner = sys.modules.get(top)
            for part in rest:
                owner = getattr(owner, part, None)
            if owner is not None and hasattr(owner, name):
                yield owner, name, getattr(owner, name)

    # -- requests --------------------------------------------------------------------------------

    def execute(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """One request in, (answer, tensors) out; what a candidate raises becomes its outcome."""
        work = getattr(self, "op_" + header["op"].partition(":")[2])
        answer = self.host["Answer"]
        try:
            reply, more = work(header, tensors)
            return {"outcome": "passed", **reply}, more
        except answer as failure:
            told = {"outcome": failure.outcome, "message": failure.message}
            return {**told, "traceback": failure.traceback}, {}
        finally:
            gc.enable()

    def op_pool(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """The random numbers inputs are cut from, in the dtype of what comes next."""
        torch = self.torch
        self.dtype = getattr(torch, header["dtype"])
        self.pool = tensors["floats"].to(self.device).to(self.dtype)
        self.numbers = tensors["numbers"].to(self.device)
        self.slots, self.outputs, self._graphs = [], [], {}
        if self.cuda:
            torch.backends.cuda.matmul.allow_tf32 = bool(header["tf32"])
            torch.backends.cudnn.allow_tf32 = bool(header["tf32"])
            size = torch.cuda.get_device_properties(self.device).L2_cache_size
            self._flush = torch.empty(max(2 * size, 1 << 20), dtype=torch.int8, device=self.device)
        return {}, {}

    def op_prepare(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """Slots for `count` calls of one component."""
        self.outputs, self.slots, self._graphs = [], [], {}
        self.function = header["function"]
        self.pass_backward = bool(header["backward"])
        self.graphed = bool(header.get("graph"))
        self.slots = [Slot(self, header, tensors) for _ in range(int(header["count"]))]
        return {}, {}

    def op_sample(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """Fill every slot, call `calls` of them, read the clocks."""
        self.outputs = []
        for slot, seed in zip(self.slots, header["seeds"], strict=False):
            slot.fill(seed)
        function = self._function(header["who"])
        if self.executor is not None:
            self.executor.state.restore(int(header["seeds"][0]) & 0x7FFFFFFF)
        used = self.slots[: int(header["calls"])]
        prepared = [(slot.arguments(), slot.cotangent) for slot in used]
        timed = self._timed_on_gpu if self.cuda else self._timed
        try:
            seconds, processor = timed(header["who"], function, prepared)
        except BaseException as error:
            raise self._told(error) from None
        peek = self._peek(header["peek"])
        self.outputs = [self.host["check_output"](output) for output in self.outputs]
        return {
            "seconds": seconds,
            "processor": processor,
            "threads": self.torch.get_num_threads(),
            "threads_alive": threading.active_count(),
            "replaced": self._replaced(),
        }, {"peek": peek}

    def _function(self, who: str) -> Any:
        function = self.contestants.get(who, {}).get(self.function)
        if function is None:
            text = f"there is no function {self.function}"
            raise self.host["Answer"]("not implemented", text)
        return function

    def _told(self, error: BaseException) -> BaseException:
        """The Answer for what candidate code raised."""
        if isinstance(error, self.host["Answer"]) or self.executor is None:
            return error
        told: BaseException = self.executor._raised(error)
        if not isinstance(told, self.host["Answer"]):
            told = self.host["Answer"]("raised", self.host["exception_text"](error))
        return told

    def _run(self, function: Any, prepared: Sequence[Any]) -> None:
        """The calls themselves; nothing else happens between two readings of the clock."""
        outputs = self.outputs
        if not self.pass_backward:
            for arguments, _ in prepared:
                outputs.append(function(**arguments))
            return
        backward = self.backward
        for arguments, cotangent in prepared:
            output = function(**arguments)
            backward((output,), (cotangent,))
            outputs.append(output)

    def _mode(self) -> Any:
        return contextlib.nullcontext() if self.pass_backward else self.torch.no_grad()

    def _timed(self, who: str, function: Any, prepared: Sequence[Any]) -> tuple[float, float]:
        clock, processor = self.clock, self.processor
        with self._mode():
            gc.disable()
            busy = processor()
            start = clock()
            self._run(function, prepared)
            end = clock()
            busy = processor() - busy
        return end - start, busy

    def _timed_on_gpu(
        self, who: str, function: Any, prepared: Sequence[Any]
    ) -> tuple[float, float]:
        """Time between two events; the cache of the device is emptied first."""
        torch = self.torch

        def work() -> None:
            self._run(function, prepared)

        if self.graphed:
            graph, self.outputs = self._graph(who, function, prepared)
            work = graph.replay
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        with self._mode():
            gc.disable()
            self._flush.zero_()
            torch.cuda.synchronize(self.device)
            began = self.clock()
            start.record()
            work()
            end.record()
            torch.cuda.synchronize(self.device)  # all streams: work on another one is waited for
            whole = self.clock() - began
        seconds = start.elapsed_time(end) / 1e3
        # an event waits for its own stream only; what was put on another one is in the whole
        waited = whole > 1.5 * seconds + HOST_SECONDS
        return whole if waited else seconds, 0.0

    def _graph(self, who: str, function: Any, prepared: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The calls as one CUDA graph on these slots, captured once for each contestant."""
        torch = self.torch
        key = f"{who}/{len(prepared)}"
        if key not in self._graphs:
            side = torch.cuda.Stream(self.device)
            side.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(side), self._mode():
                for _ in range(3):
                    self._run(function, prepared)
            torch.cuda.current_stream(self.device).wait_stream(side)
            self.outputs = []
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph), self._mode():
                self._run(function, prepared)
            self._graphs[key] = graph, self.outputs
        return self._graphs[key]

    def _peek(self, places: Sequence[float]) -> Any:
        """A few entries of the last output as they are right now: the clock has just stopped."""
        last = self.outputs[-1] if self.outputs else None
        if not isinstance(last, self.torch.Tensor) or not last.numel():
            return self.torch.zeros(0)
        flat = last.detach().reshape(-1)
        entries = [int(place * flat.numel()) for place in places]
        index = self.torch.tensor(entries, dtype=self.torch.int64, device=flat.device)
        return flat.index_select(0, index).double()

    def _replaced(self) -> list[str]:
        """Names that no longer mean what they meant before the candidate was imported."""
        return [
            f"{getattr(owner, '__name__', 'torch')}.{name}"
            for owner, name, value in self._watched
            if getattr(owner, name, None) is not value and getattr(owner, name, None) != value
        ]

    def op_outputs(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """What one of the calls of the last sample returned, with the gradients it led to."""
        index = int(header["index"])
        output = self.outputs[index]
        sent = {"output": output.detach()}
        for name, leaf in self.slots[index].leaves.items():
            if name in header["gradients"] and leaf.grad is not None:
                sent[f"gradient.{name}"] = leaf.grad.detach()
        arrived = [n for n, leaf in self.slots[index].leaves.items() if leaf.grad is not None]
        return {"arrived": arrived}, sent

    def op_digests(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """For each call of the last sample: products of its results with random vectors, norms."""
        torch = self.torch
        rows = []
        for output, slot in zip(self.outputs, self.slots, strict=False):
            values = [output.detach()]
            for name in header["gradients"]:
                gradient = slot.leaves[name].grad
                values.append(torch.zeros(1) if gradient is None else gradient.detach())
            rows.append([n for v in values for n in self._digest(v, int(header["seed"]))])
        return {}, {"digests": torch.tensor(rows, dtype=torch.float64)}

    def _digest(self, tensor: Any, seed: int) -> tuple[float, float]:
        flat = tensor.reshape(-1).double()
        vector = self.torch.empty(flat.numel(), dtype=self.pool.dtype, device=flat.device)
        self.fill(vector, cut(seed, 0)[0], 1.0)
        return float(flat @ vector.double()), float(flat.norm())

    # -- memory and the machine ------------------------------------------------------------------

    def op_memory(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """Largest memory beyond what was held before one call, and what some more leave behind."""
        function = self._function(header["who"])
        for slot, seed in zip(self.slots, header["seeds"], strict=False):
            slot.fill(seed)
        prepared = [(slot.arguments(), slot.cotangent) for slot in self.slots]
        self.outputs = []
        gauge = self._gpu_gauge() if self.cuda else ProcessMemory()
        try:
            gauge.start()
            with self._mode():
                self._run(function, prepared[:1])
            peak = gauge.peak()
            self.outputs = []
            self._forget_gradients()
            held = gauge.held()
            with self._mode():
                for one in prepared[1:]:
                    self._run(function, [one])
                    self.outputs = []
                    self._forget_gradients()
            kept = (gauge.held() - held) / max(1, len(prepared) - 1)
        except BaseException as error:
            raise self._told(error) from None
        return {"peak": peak, "kept": kept, "how": gauge.how}, {}

    def _forget_gradients(self) -> None:
        for slot in self.slots:
            for leaf in slot.leaves.values():
                leaf.grad = None

    def _gpu_gauge(self) -> Any:
        return DeviceMemory(self.torch, self.device)

    def op_ceiling(self, header: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
        """Seconds of one matrix product or one copy of that size, the best of several."""
        torch, size = self.torch, int(header["size"])
        if header["what"] == "product":
            left = self.empty((size, size))
            right = self.empty((size, size))
            for tensor in (left, right):
                self.fill(tensor, 0, 1 / 32)
            target = self.empty((size, size))

            def work() -> None:
                torch.matmul(left, right, out=target)
        else:
            source = self.empty((size // self.pool.element_size(),))
            self.fill(source, 0, 1.0)
            target = torch.empty_like(source)

            def work() -> None:
                target.copy_(source)

        return {"seconds": self._best(work, float(header["budget"]))}, {}

    def _best(self, work: Callable[[], None], budget: float) -> float:
        best, until = float("inf"), self.clock() + budget
        inner, rounds = 1, 0
        while self.clock() < until or rounds < 4:
            start = self.clock()
            for _ in range(inner):
                work()
            if self.cuda:
                self.torch.cuda.synchronize(self.device)
            taken = self.clock() - start
            if taken < 2e-4:
                inner *= 2
                continue
            rounds += 1
            best = min(best, taken / inner)
        return best

    # -- tensors ---------------------------------------------------------------------------------

    def empty(self, shape: Sequence[int]) -> Any:
        """A tensor of the run's dtype on its device."""
        return self.torch.empty(tuple(shape), dtype=self.dtype, device=self.device)

    def fill(self, tensor: Any, place: int, factor: float) -> None:
        """Fill a contiguous tensor from the pool."""
        flat = tensor.view(-1)
        for first, end, at in pieces(flat.numel(), place):
            source = self.pool[at : at + end - first]
            self.torch.mul(source, factor, out=flat[first:end])


def keep_freed_memory() -> None:
    """Tells the allocator of the C library to keep what is freed for the next call.

    Giving it back and getting it again makes the system clear every page anew: calls of one and the
    same function then take twice as long or not, depending on what was freed in which order.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if not library.mallopt(M_MMAP_THRESHOLD, 1 << 30):
            library.mallopt(M_MMAP_THRESHOLD, 1 << 25)  # the most that older versions take
        library.mallopt(M_TRIM_THRESHOLD, 1 << 30)


class ProcessMemory:
    """Resident memory of this process, as Linux counts it; elsewhere what `getrusage` knows."""

    how = "largest resident memory of the process (Linux, /proc)"

    def __init__(self) -> None:
        self._resettable = False
        with contextlib.suppress(OSError, AttributeError):
            self._trim = ctypes.CDLL(None).malloc_trim
        self._base = 0

    def start(self) -> None:
        """Give back what was freed, and forget the largest size so far."""
        self._give_back()
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
            self._resettable = True
        except OSError:
            self.how = "largest resident memory of the process so far (cannot be reset here)"
        self._base = self.held()

    def peak(self) -> int:
        """Bytes beyond what was held at the start."""
        return max(0, self._field("VmHWM:") - self._base)

    def held(self) -> int:
        """Bytes that are resident now."""
        self._give_back()
        return self._field("VmRSS:")

    def _give_back(self) -> None:
        trim = getattr(self, "_trim", None)
        if trim is not None:
            trim(0)

    @staticmethod
    def _field(name: str) -> int:
        try:
            with open("/proc/self/status", encoding="ascii") as file:
                for line in file:
                    if line.startswith(name):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0


class DeviceMemory:
    """Memory that torch's allocator has handed out on a GPU."""

    how = "largest memory of torch's allocator on the device"

    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device, self._base = torch, device, 0

    def start(self) -> None:
        """Forget the largest size so far."""
        self._torch.cuda.synchronize(self._device)
        self._torch.cuda.reset_peak_memory_stats(self._device)
        self._base = self.held()

    def peak(self) -> int:
        """Bytes beyond what was held at the start."""
        self._torch.cuda.synchronize(self._device)
        return max(0, int(self._torch.cuda.max_memory_allocated(self._device)) - self._base)

    def held(self) -> int:
        """Bytes that are handed out now."""
        return int(self._torch.cuda.memory_allocated(self._device))
