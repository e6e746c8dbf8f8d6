"""Files that appear whole or not at all, several of them together."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
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
    place by :meth:`commit`. Leaving the ``with`` block without it removes what was written. Signals
    wait until the files are in place, and a failure on the way puts the old ones back.

    Parameters
    ----------
    force : bool, default False
        Replace files that exist; otherwise an existing one is an error before anything is done.
    """

    def __init__(self, *, force: bool = False) -> None:
        self.force = force
        self._staged: dict[Path, Path] = {}
        self._backups: dict[Path, Path] = {}

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *exc: object) -> None:
        with _signals_deferred():
            for temporary in (*self._staged.values(), *self._backups.values()):
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
            self._staged.clear()
            self._backups.clear()

    def reserve(self, path: str | Path) -> Path:
        """Check early that a file can be put at ``path``, and stage an empty one."""
        target = _possible(path)
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
        if target.exists() and not self.force:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        # Beside what a link points to: the link stays one.
        temporary = _beside(target, "part")
        # Known before it exists: an interruption at any moment must not leave it behind.
        self._staged[target] = temporary
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            del self._staged[target]
            # The temporary name means nothing to the reader of the message.
            raise type(error)(error.errno, error.strerror, str(target)) from None
        return target

    def staged(self, path: str | Path) -> Path:
        """Where a reserved file is being written, for code that wants a path and not a stream."""
        target = Path(path)
        if target not in self._staged:
            self.reserve(target)
        return self._staged[target]

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
        """Put all files in place, or none of them."""
        mask = os.umask(0)
        os.umask(mask)
        with _signals_deferred():
            placed: list[Path] = []
            try:
                for target in self._staged:
                    self._keep_old(target)
                for target, temporary in self._staged.items():
                    old = self._backups.get(target)
                    temporary.chmod(0o666 & ~mask if old is None else old.stat().st_mode & 0o777)
                    temporary.replace(target.resolve())
                    placed.append(target)
            except BaseException:
                for target in placed:
                    if target in self._backups:
                        self._backups[target].replace(target.resolve())
                    else:
                        target.resolve().unlink(missing_ok=True)
                raise
            self._staged.clear()
            _written.extend(placed)

    def _keep_old(self, target: Path) -> None:
        """Keep what is at ``target``, under another name in the same folder."""
        if not target.exists():
            return
        if not self.force:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        backup = _beside(target, "old")
        try:
            os.link(target.resolve(), backup)
        except OSError:
            # Not every file system has links.
            shutil.copy2(target.resolve(), backup)
        self._backups[target] = backup


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


def _beside(target: Path, ending: str) -> Path:
    """An unused name beside what a link points to: the link stays one."""
    return target.resolve().with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.{ending}")


def _possible(path: str | Path) -> Path:
    """The path, unless it cannot be one: chains of links without end, names too long."""
    target = Path(path)
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise InvalidArgumentError(
            f"{str(path)!r} is no name of a file ({error}).\nChoose another one."
        ) from error
    return target


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
