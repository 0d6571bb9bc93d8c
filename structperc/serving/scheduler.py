"""The order in which jobs are answered: short ones together, long ones in pieces that take turns.

Short and long jobs have a thread each, so that a short one never waits for a long one. The threads are daemons: a piece
of work that has begun does not keep the process from ending.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from structperc.serving.jobs import PIECE, Job
from structperc.serving.requests import Limits, unavailable

Found = TypeVar("Found")
Batch = Callable[[Sequence[Job]], Sequence[str | Exception]]
Pieces = Callable[[Job], Iterator[str | None]]
TURNS = 4  # long jobs in progress; each keeps its tokens in memory, further ones wait


class Scheduler:
    """Answers jobs in two threads.

    All short jobs that wait when a call ends are answered by the next call: an idle service answers immediately, and a
    busy one labels many texts per call, without a delay to be configured.

    Args:
        together: returns the answers to several short jobs, or their errors.
        in_pieces: yields None before each piece of work on a long job, and then its answer.
        limits: of waiting jobs, of those answered together, and of seconds.
    """

    def __init__(self, together: Batch, in_pieces: Pieces, limits: Limits) -> None:
        self._together, self._in_pieces, self._limits = together, in_pieces, limits
        self._short: deque[tuple[Job, asyncio.Future[str]]] = deque()
        self._long = 0
        self._batches: asyncio.Task[None] | None = None
        self._turns = asyncio.Semaphore(TURNS)
        self._short_thread, self._long_thread = WorkerThread("short jobs"), WorkerThread("long jobs")

    def __len__(self) -> int:
        """Return the number of waiting jobs and of long ones in progress."""
        return len(self._short) + self._long

    @property
    def busy(self) -> bool:
        """Whether a thread is at work."""
        return self._short_thread.busy or self._long_thread.busy

    async def answer(self, job: Job) -> str:
        """Return the answer to a job; when the caller is cancelled, work on it ends with the present piece.

        Raises HTTPException when too many jobs wait or the answer takes too long, and the errors of the job.
        """
        if len(self) >= self._limits.waiting:
            raise unavailable("too many requests wait; come back later")
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await (self._answer_long(job) if job.size > PIECE else self._answer_short(job))
        except TimeoutError:
            late = f"no answer within {self._limits.seconds:g} seconds; send less at a time, or come back later"
            raise unavailable(late) from None

    async def _answer_long(self, job: Job) -> str:
        """The thread takes pieces in the order in which they come, one of each long job in turn."""
        self._long += 1
        try:
            async with self._turns:
                pieces = self._in_pieces(job)
                while (found := await self._long_thread.run(partial(next, pieces))) is None:
                    pass
                return found
        finally:
            self._long -= 1

    async def _answer_short(self, job: Job) -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._short.append((job, future))
        if self._batches is None or self._batches.done():
            self._batches = asyncio.create_task(self._answer_batches())
        return await future

    async def _answer_batches(self) -> None:
        """Answer short jobs until none waits."""
        while batch := self._next_batch():
            await self._answer_batch(batch)

    def _next_batch(self) -> list[tuple[Job, asyncio.Future[str]]]:
        """Take waiting jobs, up to the size of a piece."""
        batch: list[tuple[Job, asyncio.Future[str]]] = []
        size = 0
        while self._short and len(batch) < self._limits.together and size <= PIECE:
            job, future = self._short.popleft()
            if not future.done():  # else its client has disconnected
                batch.append((job, future))
                size += job.size
        return batch

    async def _answer_batch(self, batch: Sequence[tuple[Job, asyncio.Future[str]]]) -> None:
        found: Sequence[str | Exception]
        try:
            found = await self._short_thread.run(partial(self._together, [job for job, _ in batch]))
        except Exception as error:  # the clients get it, and the service goes on
            found = [error] * len(batch)
        for (_, future), answer in zip(batch, found, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


class WorkerThread:
    """A daemon thread that does one piece of work after the other, in the order in which they come."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        self._name = name
        self._thread: threading.Thread | None = None
        self.busy = False

    async def run(self, work: Callable[[], Found]) -> Found:
        """Return what the work returns, or raise what it raises; it is left out when the caller is cancelled before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._work.put((work, future))
        return await future

    def _run(self) -> None:
        while True:
            work, future = self._work.get()
            if future.cancelled():
                continue
            self.busy = True
            found, error = None, None
            try:
                found = work()
            except BaseException as raised:
                error = raised
            self.busy = False
            with suppress(RuntimeError):  # the event loop has ended
                future.get_loop().call_soon_threadsafe(_settle, future, found, error)


def _settle(future: "asyncio.Future[Any]", found: Any, error: BaseException | None) -> None:
    """Give a future its result, unless it was cancelled."""
    if future.cancelled():
        return
    if error is None:
        future.set_result(found)
    else:
        future.set_exception(error)
