"""Limits on the candidate's process, and everything that differs between platforms.

Nothing else on the judge's side asks which system it runs on; `worker.py`, which has to stand
alone, tries what may be missing and goes on without.  What a platform lacks is left out, and
`Description.isolation` (and with it the report) says what was in force.
"""

from __future__ import annotations

import contextlib
import os
import signal
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import UsageError

GIB = 1 << 30
POSIX = os.name == "posix"

#: what a candidate's process inherits; everything else (PYTHON*, tokens, CI variables) stays here
ALLOWED = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "USERNAME"),
        *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC"),
        *("PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "OS"),
        *("NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_DUPLICATE_LIB_OK"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH"),
        "CUBLAS_WORKSPACE_CONFIG",
    }
)

#: further ones when a device other than the CPU was asked for
ALLOWED_DEVICE = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING"),
        *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ENABLE_MPS_FALLBACK"),
    }
)

#: names of the exit statuses by which Windows reports a fault of the program
_WINDOWS_FAULTS = {
    0xC0000005: "an access violation",
    0xC00000FD: "a stack overflow",
    0xC0000017: "lack of memory",
    0xC0000409: "a corrupted stack",
    0xC000013A: "an interrupt",
}

_SIGNAL_WORDS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "abort",
    "SIGFPE": "arithmetic error",
    "SIGILL": "illegal instruction",
    "SIGBUS": "bus error",
    "SIGKILL": "perhaps by the system's out-of-memory killer",
    "SIGXCPU": "more processor time than it may have",
}


@dataclass(frozen=True)
class Limits:
    """What one candidate may use; seconds of wall clock, bytes of memory."""

    #: for one call
    call_seconds: float = 10.0
    #: for importing the candidate, and again (once, in total) for imports inside calls
    import_seconds: float = 60.0
    #: for starting Python and importing torch, which is not the candidate's doing
    torch_seconds: float = 120.0
    #: memory on top of what Python and torch take by themselves
    memory_bytes: int = 8 * GIB
    #: kept of what one call prints; the middle is cut out
    output_bytes: int = 64 * 1024
    #: what the tensors of one answer may take; a benchmark reads larger ones
    answer_bytes: int = 16 << 20
    #: for everything together, from the first import to the last call
    total_seconds: float = 3600.0
    #: processes at the same time, the candidate's own included
    processes: int = 64
    #: size of one file; in a sandbox also of all its temporary files together
    file_bytes: int = GIB
    #: files that are open at the same time, pipes included
    open_files: int = 1024

    def processor_seconds(self, threads: int) -> float:
        """Processor time of one call; no honest one with so many threads comes near it."""
        return 4.0 * threads * (self.call_seconds + self.import_seconds)

    def told(self, threads: int, *, own_users: bool) -> dict[str, Any]:
        """What the worker imposes upon itself, in values that JSON can hold.

        `own_users`: it runs in a user namespace of its own, so that the number of its tasks can be
        limited; elsewhere those of the same user's other programs would count as well. The system
        counts no tasks of root's.
        """
        counted = own_users and POSIX and os.geteuid() != 0
        return {
            "memory_bytes": self.memory_bytes,
            "file_bytes": self.file_bytes,
            "open_files": self.open_files,
            "tasks": 16 * self.processes if counted else 0,
            "processor_seconds": self.processor_seconds(threads),
            "total_processor_seconds": int(4 * threads * self.total_seconds) + 1,
        }


DEFAULT_LIMITS = Limits()


def amount(size: int) -> str:
    """`size` bytes in words: 8589934592 -> "8 GiB"."""
    for unit, scale in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def environment(device: str, scratch: Path) -> dict[str, str]:
    """The environment of a candidate's process: an allow-list, and no GPU unless asked for.

    `scratch` becomes its home and its temporary folder, which the judge removes in the end.
    """
    allowed = ALLOWED if device == "cpu" else ALLOWED | ALLOWED_DEVICE
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in allowed or name.upper().startswith("LC_")
    }
    folders = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP")
    kept.update(dict.fromkeys(folders, str(scratch)))
    kept.update(WANDB_MODE="disabled", TOKENIZERS_PARALLELISM="false", MPLBACKEND="Agg")
    if device == "cpu":
        kept.setdefault("OMP_NUM_THREADS", "1")
        kept.update(CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="", ROCR_VISIBLE_DEVICES="")
        # compiling costs more than the ten seconds of a call and does not change a result
        kept.update(TORCHDYNAMO_DISABLE="1")
    return kept


def interpreter(python: Path | None) -> Path:
    """The interpreter to run the candidate with: ours, a file, or that of a virtual environment."""
    if python is None:
        return Path(sys.executable)
    if python.is_dir():
        for inside in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
            if (python / inside).exists():
                return (python / inside).absolute()
        raise UsageError(f"--python {python}: no Python interpreter in this folder")
    if not python.exists():
        raise UsageError(f"--python {python}: there is no such file or folder")
    # a virtual environment's python is a link that must not be followed
    return python.absolute()


def spawn_options() -> Mapping[str, Any]:
    """Keywords for `subprocess.Popen` that put a process in a group of its own."""
    if POSIX:
        return {"start_new_session": True, "close_fds": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def shield() -> None:
    """Closes this process's memory, environment and descriptors in /proc to others of its user.

    Of use where the candidate's process runs under the same user without a sandbox. Linux only.
    """
    if sys.platform.startswith("linux"):
        import ctypes

        zero = ctypes.c_ulong(0)
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(4, zero, zero, zero, zero)  # PR_SET_DUMPABLE


def wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits until `process` has ended, at most so long."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def kill(process: subprocess.Popen[bytes], *, depth: int = 0) -> None:
    """Ends `process` and everything it started; returns when it is gone.

    `depth`: the candidate's own process is so many generations below. Those between take along what
    has run away from the family, so they are asked first.
    """
    family = _descendants(process.pid) if process.poll() is None else []
    if depth and family:
        _ask_keeper(process, family)
    if POSIX:
        # also when the process itself has ended: others of its group may still run
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    for child in family:
        with contextlib.suppress(Exception):
            child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)


def _ask_keeper(process: subprocess.Popen[bytes], family: list[Any]) -> None:
    """Lets the keeper, or the first process of a namespace, end what is below it."""
    first = next((p for p in family if _first_of_a_namespace(p.pid)), None)
    with contextlib.suppress(Exception):
        if first is not None:
            first.kill()  # the system ends all others of the namespace
        else:
            process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)


def _first_of_a_namespace(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
    except OSError:
        return False
    line = next((text for text in status.splitlines() if text.startswith("NSpid:")), "")
    return len(line.split()) > 2 and line.split()[-1] == "1"


def below(pid: int, depth: int) -> Any:
    """The process (of psutil) that is `depth` generations below `pid`; None if it is not there."""
    import psutil  # type: ignore[import-untyped]

    try:
        process = psutil.Process(pid)
        for _ in range(depth):
            process = min(process.children(), key=lambda child: child.create_time(), default=None)
            if process is None:
                return None
    except psutil.Error:
        return None
    return process


def _descendants(pid: int) -> list[Any]:
    """Processes below `pid`, those that left its group included."""
    import psutil

    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def resident_memory(pid: int) -> int:
    """Bytes of memory that `pid` holds now; 0 if it has ended."""
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def usage(pid: int) -> tuple[int, int]:
    """(bytes of memory, number of processes) of everything below `pid`; takes milliseconds."""
    import psutil

    total = count = 0
    for process in _descendants(pid):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
            count += 1
    return total, count


def user_site(python: Path) -> str | None:
    """The user's own package folder, if the judge uses it and the candidate runs under the same
    Python; the worker is started in isolated mode and has to be told."""
    folder = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return folder if folder in sys.path and python == Path(sys.executable) else None


def processor_seconds(pid: int) -> float:
    """Processor time that `pid` has had so far; 0 when it has ended."""
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def runnable(pid: int) -> bool:
    """Whether `pid` would go on if it were let: neither asleep nor ended."""
    import psutil

    try:
        return psutil.Process(pid).status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    except psutil.Error:
        return False


def request_stack(process: Any) -> bool:
    """Asks a hanging worker (of psutil) to write its stack; False where that cannot be."""
    wanted = getattr(signal, "SIGUSR1", None)
    if wanted is None or process is None:
        return False
    try:
        process.send_signal(wanted)  # psutil makes sure that the number is not another's by now
    except Exception:
        return False
    return True


def out_of_processor_time(status: int | None) -> bool:
    """Has the system ended a process with that status because it had its processor time?"""
    return status is not None and status == -int(getattr(signal, "SIGXCPU", 0)) != 0


def exit_status(status: int | None, *, wrapped: bool) -> int | None:
    """The exit status of the candidate's process: a sandbox tells a signal N as 128 + N."""
    if wrapped and status is not None and 128 < status <= 128 + 64:
        return 128 - status
    return status


def exit_text(status: int | None) -> str:
    """How a process ended, as the end of a sentence that starts with "the process"."""
    if status is None:
        return "closed its connection"
    fault = _WINDOWS_FAULTS.get(status & 0xFFFFFFFF)
    if fault:
        return f"was ended by the system for {fault}"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            return f"was killed by signal {-status}"
        words = _SIGNAL_WORDS.get(name)
        return f"was killed by {name}" + (f" ({words})" if words else "")
    return f"ended with exit status {status}"
