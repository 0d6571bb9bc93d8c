"""Questions that wait together are labelled together, in a thread beside the one that reads requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class TooMany(Exception):  # noqa: N818  # a state of the service, not a fault of the program
    """As many questions wait as may wait."""


class Batcher(Generic[Question, Answer]):
    """Gives each question its answer; whatever waits when the last batch is done is the next one.

    So an idle service answers at once, and a busy one labels many texts in a call, without any time to be set.

    Args:
        ask: gives the answers to several questions; it runs in one other thread, one call after the other.
        together: the most questions of a call.
        waiting: the most questions that wait.
    """

    def __init__(self, ask: Callable[[Sequence[Question]], Sequence[Answer]], together: int, waiting: int) -> None:
        self._ask, self._together, self._most = ask, together, waiting
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    async def answer(self, question: Question) -> Answer:
        """Return the answer to a question. Raises TooMany, and whatever `ask` raises."""
        if len(self._waiting) >= self._most:
            raise TooMany
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        self._some.set()
        return await future

    async def run(self) -> None:
        """Answer questions until cancelled."""
        with ThreadPoolExecutor(1, "labelling") as thread:
            while True:
                await self._some.wait()
                batch = [self._waiting.popleft() for _ in range(min(self._together, len(self._waiting)))]
                if not self._waiting:
                    self._some.clear()
                await self._settle(thread, [one for one in batch if not one[1].done()])  # some clients have gone

    async def _settle(
        self, thread: ThreadPoolExecutor, batch: Sequence[tuple[Question, asyncio.Future[Answer]]]
    ) -> None:
        if not batch:
            return
        try:
            questions = [question for question, _ in batch]
            found = await asyncio.get_running_loop().run_in_executor(thread, self._ask, questions)
        except Exception as error:  # each client is told, and the service goes on
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, found, strict=True):
            if not future.done():
                future.set_result(answer)
