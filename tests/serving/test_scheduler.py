"""Short questions are answered together, long ones in pieces; what is wrong concerns those alone who asked for it."""

import asyncio
import threading
from contextlib import suppress

import pytest
from starlette.exceptions import HTTPException

from structperc.serving.jobs import CHUNK_SIZE
from structperc.serving.requests import Limits
from structperc.serving.scheduler import Scheduler


class Asked:
    """A question about a number; the answer is its double."""

    def __init__(self, number, size=1):
        self.number, self.size = number, size


class Doubles:
    """Answers questions, and keeps what it was asked; waits for `go` before each short call and each long piece."""

    def __init__(self, pieces=3):
        self.go = threading.Semaphore(0)
        self.calls, self.steps, self.pieces = [], [], pieces

    def label_batch(self, jobs):
        assert self.go.acquire(timeout=10)
        self.calls.append([one.number for one in jobs])
        if 13 in self.calls[-1]:
            raise ValueError("unlucky")
        return [KeyError("seven") if one.number == 7 else str(2 * one.number) for one in jobs]

    def label_in_chunks(self, job):
        for _ in range(self.pieces):
            assert self.go.acquire(timeout=10)
            self.steps.append(job.number)
            yield None
        yield str(2 * job.number)


def played(scene, **limits):
    """Run `scene(scheduler, doubles)`."""

    async def play():
        doubles = Doubles()
        scheduler = Scheduler(
            doubles.label_batch, doubles.label_in_chunks, Limits(**{"together": 3, "waiting": 4, **limits})
        )
        try:
            return await scene(scheduler, doubles)
        finally:
            doubles.go.release(100)

    return asyncio.run(play())


async def begun(scheduler, *jobs):
    """Ask questions, in this order, without waiting for answers."""
    tasks = []
    for job in jobs:
        own = job if isinstance(job, Asked) else Asked(job)
        tasks.append(asyncio.create_task(scheduler.answer(own)))
        await asyncio.sleep(0.02)
    return tasks


def long(number):
    return Asked(number, CHUNK_SIZE + 1)


def test_short_requests_are_batched():
    async def scene(scheduler, doubles):
        tasks = await begun(scheduler, 1, 2, 3, 4, 5)
        doubles.go.release(3)
        return await asyncio.gather(*tasks), doubles.calls

    label_jobs, calls = played(scene)
    assert label_jobs == ["2", "4", "6", "8", "10"]
    assert calls == [[1], [2, 3, 4], [5]]


def test_a_call_has_no_more_than_a_piece_of_text():
    async def scene(scheduler, doubles):
        tasks = await begun(scheduler, 1, Asked(2, CHUNK_SIZE), Asked(3, CHUNK_SIZE), 4)
        doubles.go.release(3)
        await asyncio.gather(*tasks)
        return doubles.calls

    assert played(scene) == [[1], [2, 3], [4]]


def test_long_requests_take_turns():
    async def scene(scheduler, doubles):
        first, second = await begun(scheduler, long(1), long(2))
        doubles.go.release(2)
        await asyncio.sleep(0.05)
        (short,) = await begun(scheduler, 5)
        doubles.go.release(5)
        return await asyncio.gather(first, second, short), doubles.steps

    label_jobs, steps = played(scene)
    assert label_jobs == ["2", "4", "10"]
    assert sorted(steps[:2]) == sorted(steps[2:4]) == [1, 2]


def test_as_many_wait_as_may():
    async def scene(scheduler, doubles):
        tasks = await begun(scheduler, 1, 2, 3, 4, long(5))  # the first one is being answered
        assert len(scheduler) == 4
        with pytest.raises(HTTPException) as error_message:
            await scheduler.answer(Asked(9))
        doubles.go.release(10)
        await asyncio.gather(*tasks)
        return error_message.value, await scheduler.answer(Asked(9))

    error_message, answer = played(scene)
    assert (error_message.status_code, set(error_message.headers)) == (503, {"Retry-After"})
    assert answer == "18"


@pytest.mark.parametrize("job", [Asked(1), long(1)], ids=["short", "long"])
def test_nobody_waits_longer_than_a_limit(job):
    async def scene(scheduler, doubles):
        with pytest.raises(HTTPException) as error_message:
            await scheduler.answer(job)
        doubles.go.release(10)
        await asyncio.sleep(0.05)
        return error_message.value, doubles.steps, len(scheduler)

    error_message, steps, waiting = played(scene, seconds=0.05)
    assert (error_message.status_code, set(error_message.headers), waiting) == (503, {"Retry-After"}, 0)
    assert len(steps) <= 1  # the piece that had begun


def test_error_in_one_call():
    async def scene(scheduler, doubles):
        tasks = await begun(scheduler, 1, 13, 2)
        doubles.go.release(10)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [*found, *await asyncio.gather(*await begun(scheduler, 7), return_exceptions=True)]

    first, *wrong, own = played(scene)
    assert first == "2"
    assert [repr(one) for one in wrong] == ["ValueError('unlucky')"] * 2
    assert isinstance(own, KeyError)


def test_cancelled_requests():
    async def scene(scheduler, doubles):
        tasks = await begun(scheduler, 1, 2, 3, long(4))
        doubles.go.release()  # for the call or for the piece, whichever is first
        for gone in (tasks[1], tasks[3]):
            gone.cancel()
        await asyncio.sleep(0.05)
        doubles.go.release(10)
        await asyncio.gather(tasks[0], tasks[2])
        with suppress(asyncio.CancelledError):
            await tasks[3]
        return doubles.calls, doubles.steps, len(scheduler)

    calls, steps, waiting = played(scene)
    assert calls == [[1], [3]]
    assert steps in ([4], [])
    assert waiting == 0
