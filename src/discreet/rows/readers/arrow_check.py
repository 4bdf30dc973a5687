"""Whether an Arrow file is sound, looked at in a process of its own: a damaged one can end the process that reads it.

Arrow trusts offsets and indices in a file, and one flipped bit sends it anywhere in memory. So every value is checked
once by Arrow's own full validation, in a child process that may die of it, before rows are read from the file here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from discreet.values.errors import DataError

CHECK = """
import sys
import pyarrow as pa
try:
    with pa.memory_map(sys.argv[1]) as file:
        reader = pa.ipc.open_file(file)
        for i in range(reader.num_record_batches):
            reader.get_batch(i).validate(full=True)
except (pa.ArrowException, OSError, ValueError, MemoryError):
    sys.exit(3)
"""
"""What the child runs; it gets nothing but the path, and says nothing but whether it got through."""
SECONDS_AT_LEAST, SECONDS_PER_GIGABYTE = 60, 60


def require_sound(label: str, path: Path) -> None:
    """Refuse an Arrow file that does not pass Arrow's own validation, or that ends the process in which it is tried."""
    patience = SECONDS_AT_LEAST + SECONDS_PER_GIGABYTE * path.stat().st_size / 2**30
    command = [sys.executable, "-I", "-c", CHECK, str(path)]
    try:
        ran = subprocess.run(
            command, capture_output=True, timeout=patience, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"{label}: checking it takes more than {patience:.0f} s; it is damaged, or made to"
        ) from None
    if ran.returncode != 0:
        raise DataError(f"{label}: the Arrow file is damaged; write it anew")
