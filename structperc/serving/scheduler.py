"""The order in which jobs are answered: short ones together, long ones in chunks that take turns.

Short and long jobs have a thread each, so that a short one never waits for a long one. The threads are daemons, unlike
those of an executor: unfinished work does not keep the process from ending.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from structperc.serving.jobs import CHUNK_SIZE, Job
from structperc.serving.requests import Limits, unavailable

WorkResult = TypeVar("WorkResult")
TURNS = 4  # long jobs in progress; each keeps its tokens in memory, further ones wait


class Scheduler:
    """Answers jobs in two threads.

    All short jobs that wait at the end of a call are answered by the next call: an idle service answers immediately,
    and a busy one labels many texts per call, without a configured delay.

    Args:
        label_batch: returns the answers to several short jobs, or their errors.
        label_in_chunks: yields None before each chunk of a long job, and finally its answer.
        limits: maximum numbers of waiting jobs, of jobs per batch, and of seconds.
    """

    def __init__(
        self,
        label_batch: Callable[[Sequence[Job]], Sequence[str | Exception]],
        label_in_chunks: Callable[[Job], Iterator[str | None]],
        limits: Limits,
    ) -> None:
        self._label_batch, self._label_in_chunks, self._limits = label_batch, label_in_chunks, limits
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
        """True if a thread is working."""
        return self._short_thread.busy or self._long_thread.busy

    async def answer(self, job: Job) -> str:
        """Return the answer to a job; if the caller is cancelled, work on it ends after the current chunk.

        Raises HTTPException when too many jobs wait or the answer takes too long, and the errors of the job.
        """
        if len(self) >= self._limits.waiting:
            raise unavailable("too many pending requests; retry later")
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await (self._answer_long(job) if job.size > CHUNK_SIZE else self._answer_short(job))
        except TimeoutError:
            late = f"no answer within {self._limits.seconds:g} seconds; send smaller requests or retry later"
            raise unavailable(late) from None

    async def _answer_long(self, job: Job) -> str:
        """Return the answer to a long job; the thread works on the chunks of long jobs in turn."""
        self._long += 1
        try:
            async with self._turns:
                chunks = self._label_in_chunks(job)
                while (found := await self._long_thread.run(partial(next, chunks))) is None:
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
        while batch := self._next_batch():
            found: Sequence[str | Exception]
            try:
                found = await self._short_thread.run(partial(self._label_batch, [job for job, _ in batch]))
            except Exception as error:  # sent to the clients; the service continues
                found = [error] * len(batch)
            for (_, future), answer in zip(batch, found, strict=True):
                _set_outcome(future, answer)

    def _next_batch(self) -> list[tuple[Job, asyncio.Future[str]]]:
        batch: list[tuple[Job, asyncio.Future[str]]] = []
        size = 0
        while self._short and len(batch) < self._limits.together and size <= CHUNK_SIZE:
            job, future = self._short.popleft()
            if not future.done():  # else its client has disconnected
                batch.append((job, future))
                size += job.size
        return batch


class WorkerThread:
    """A daemon thread that calls functions in the order in which they are submitted."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        self._name = name
        self._thread: threading.Thread | None = None
        self.busy = False

    async def run(self, work: Callable[[], WorkResult]) -> WorkResult:
        """Return the result of the function, or raise its error; it is not called if the caller is cancelled before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: asyncio.Future[WorkResult] = asyncio.get_running_loop().create_future()
        self._work.put((work, future))
        return await future

    def _run(self) -> None:
        while True:
            work, future = self._work.get()
            if future.cancelled():
                continue
            self.busy = True
            try:
                outcome = work()
            except BaseException as error:
                outcome = error
            self.busy = False
            with suppress(RuntimeError):  # the event loop has ended
                future.get_loop().call_soon_threadsafe(_set_outcome, future, outcome)


def _set_outcome(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
