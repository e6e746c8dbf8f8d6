"""Output files that are put in place complete and together, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from skcoral.core.display import printable
from skcoral.exceptions import InvalidArgumentError

_written: list[Path] = []


class Outputs:
    """A set of files that is put in place at the end, all together, or not at all.

    Each file is written beside its destination under a hidden temporary name and renamed into
    place by :meth:`commit`, while signals wait. Leaving the ``with`` block without it removes what
    was written.

    Parameters
    ----------
    force : bool, default False
        Replace files that exist; otherwise an existing one is an error before anything is done.
    """

    def __init__(self, *, force: bool = False) -> None:
        self.force = force
        self._staged: dict[Path, Path] = {}

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *exc: object) -> None:
        with _signals_deferred():
            for temporary in self._staged.values():
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
            self._staged.clear()

    def reserve(self, path: str | Path) -> Path:
        """Check early that a file can be put at ``path``; returns where to write it until then."""
        target = Path(path)
        with contextlib.suppress(FileNotFoundError):
            target.stat()  # fails where links never end or the name is too long
        if target.resolve() in {other.resolve() for other in self._staged}:
            raise InvalidArgumentError(
                f"{printable(str(target))}: two outputs have the same name.\n"
                "Give every output a name of its own."
            )
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        if target.exists() and not target.is_file():
            # A device or a pipe would be replaced by a file, for all programs.
            raise OSError(errno.EINVAL, "not a regular file", str(target))
        self._check_new(target)
        # Beside what a link points to: the link stays one.
        unused = f".{target.name[:40]}.{secrets.token_hex(8)}.part"
        temporary = target.resolve().with_name(unused)
        # Listed before it exists, so that an interruption at any moment does not leave it behind.
        self._staged[target] = temporary
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            del self._staged[target]
            # The temporary name means nothing to the reader of the message.
            raise type(error)(error.errno, error.strerror, str(target)) from None
        return temporary

    def staged(self, path: str | Path) -> Path:
        """Where a file is written until it is put in place, for code that wants a path."""
        return self._staged.get(Path(path)) or self.reserve(path)

    @contextlib.contextmanager
    def open(self, path: str | Path) -> Iterator[BinaryIO]:
        """Open a staged file for writing bytes (reserving it first where that was not done)."""
        try:
            with self.staged(path).open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            # The system does not say which file it has no room for.
            if error.filename is None and error.errno is not None:
                error.filename = str(path)
            raise

    def write_text(self, path: str | Path, text: str) -> None:
        """Write a whole text file in UTF-8."""
        with self.open(path) as stream:
            stream.write(text.encode("utf-8"))

    def commit(self) -> None:
        """Put all files in place, or none of them where one has appeared meanwhile."""
        mask = os.umask(0)
        os.umask(mask)
        with _signals_deferred():
            for target in self._staged:
                self._check_new(target)
            for target, temporary in self._staged.items():
                old = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask
                temporary.chmod(old)
                temporary.replace(target.resolve())
                _written.append(target)
            self._staged.clear()

    def _check_new(self, target: Path) -> None:
        if target.exists() and not self.force:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open one file that takes the place of an existing one when the block has succeeded."""
    with Outputs(force=True) as outputs:
        with outputs.open(Path(path)) as stream:
            yield stream
        outputs.commit()


def written_files() -> list[str]:
    """The files that this process has put in place so far."""
    return [str(path) for path in _written]


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer signals until the block has ended."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    waiting = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
