"""Carpool carries the messages of MPI programs in fewer ones (MPICH and Intel MPI).

The command is to be used behind mpiexec, for programs in Python, too:

    mpiexec -n 16 carpool run --report=report.json python app.py

It preloads the library into the ranks, which happens before Python starts: a program that runs
cannot do it for itself. For launchers that want the preload by name there is `library()`, and
`load_report()` reads what a run says of itself. `python -m carpool` is the command.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, files
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = ["command", "library", "load_report"]


def _installed(path: str) -> Path:
    """A file of the wheel by its place below the prefix, for example the venv."""
    try:
        installed = files("carpool") or []
    except PackageNotFoundError:
        installed = []
    for file in installed:
        place = Path(str(file.locate())).resolve()
        if str(place).endswith("/" + path) and place.exists():
            return place
    raise FileNotFoundError(
        f"{path} of Carpool is not installed beside {__file__}: install the wheel by "
        "`pip install` into a venv (pip's --target leaves the libraries out)"
    )


def command() -> Path:
    """The command `carpool`: no script, but a program that needs no Python."""
    return _installed("bin/carpool")


def library() -> Path:
    """The library to preload on the ranks, as in `mpiexec -genv LD_PRELOAD PATH ...`.

    It serves programs of the standard ABI (libmpi_abi), too: by libcarpool_abi.so beside it.
    """
    return _installed("lib/libcarpool.so")


def load_report(path: str | PathLike[str]) -> dict[str, Any]:
    """Reads a report, which `carpool run --report=PATH` writes; report.schema.json describes it.

    Raises OSError when the file cannot be read, ValueError when it is no report.
    """
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no report of Carpool: {error}") from error
    if not isinstance(report, dict) or not isinstance(report.get("patterns"), list):
        raise ValueError(f"{path} is no report of Carpool: it has no list of patterns")
    return report
