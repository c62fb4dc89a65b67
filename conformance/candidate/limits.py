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
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "USERNAME"),
        *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC"),
        *("PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "OS"),
        *("NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_DUPLICATE_LIB_OK"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH"),
        *("CUBLAS_WORKSPACE_CONFIG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
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


DEFAULT_LIMITS = Limits()


def amount(size: int) -> str:
    """`size` bytes in words: 8589934592 -> "8 GiB"."""
    for unit, scale in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def environment(device: str, scratch: Path) -> dict[str, str]:
    """The environment of a candidate's process: an allow-list, and no GPU unless asked for.

    `scratch` becomes its temporary folder, which the judge removes in the end.
    """
    allowed = ALLOWED if device == "cpu" else ALLOWED | ALLOWED_DEVICE
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in allowed or name.upper().startswith("LC_")
    }
    kept.update(TMPDIR=str(scratch), TEMP=str(scratch), TMP=str(scratch))
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


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends `process` and everything it started; returns when it is gone."""
    family = _descendants(process.pid) if process.poll() is None else []
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


def _descendants(pid: int) -> list[Any]:
    """Processes below `pid`, those that left its group included."""
    import psutil  # type: ignore[import-untyped]

    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


def resident_memory(pid: int, *, descendants: bool = False) -> int:
    """Bytes of memory that `pid` holds now, with its `descendants` if wanted (slow); 0 if ended."""
    import psutil

    total = 0
    with contextlib.suppress(psutil.Error):
        processes = [psutil.Process(pid), *(_descendants(pid) if descendants else [])]
        for process in processes:
            total += process.memory_info().rss
    return total


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


def request_stack(process: subprocess.Popen[bytes]) -> bool:
    """Asks a hanging worker to write its Python stack to its file; False where that cannot be."""
    wanted = getattr(signal, "SIGUSR1", None)
    if wanted is None or process.poll() is not None:
        return False
    with contextlib.suppress(OSError):
        process.send_signal(wanted)
        return True
    return False


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
