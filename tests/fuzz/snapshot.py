"""What lies in a folder: path -> what stands there."""

import hashlib
import os
import stat
from pathlib import Path


def snapshot(folder: Path) -> dict[str, str]:
    """All files, links, devices and folders below a folder; links are not followed."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            found[path.relative_to(folder).as_posix()] = _held(path)
    return found


def _held(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(mode):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "folder" if stat.S_ISDIR(mode) else "device"
