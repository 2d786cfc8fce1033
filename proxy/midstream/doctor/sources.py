"""Opens what `doctor` is given: captures, and folders of them."""

from collections.abc import Sequence
from pathlib import Path

from midstream.adapters.capture_format import SUFFIX
from midstream.adapters.capture_open import Source, open_capture
from midstream.core.errors import CaptureError


def opened(paths: Sequence[str]) -> list[tuple[str, Source]]:
    """Open everything before anything is read. Raises CaptureError.

    A folder that holds several captures stands for all of them.
    """
    found: list[tuple[str, Source]] = []
    for path in paths:
        names = _captures_in(Path(path))
        if len(names) > 1:
            found += [(str(name), open_capture(name)) for name in names]
        else:
            found.append((path, open_capture(path)))
    return found


def size_of(readers: Sequence[tuple[str, Source]]) -> int:
    """Return how many bytes there are to read."""
    try:
        return sum(path.stat().st_size for _, reader in readers for path in reader.paths)
    except OSError as error:
        raise CaptureError(f"{error.filename}: cannot be read: {error.strerror}") from None


def _captures_in(path: Path) -> list[Path]:
    """Return the captures of a folder, each as DIR/NAME."""
    if not path.is_dir():
        return []
    files = path.glob(f"*-[0-9][0-9][0-9][0-9][0-9][0-9]{SUFFIX}")
    return sorted({path / file.name[: -len("-000001.cap")] for file in files})
