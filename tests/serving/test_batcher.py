"""Questions that wait together are labelled together; what goes wrong is told to those whom it concerns."""

import asyncio
import threading

import pytest

from structperc.serving.batcher import Batcher, TooMany


class Asked:
    """Answers each number with its double, and keeps what was asked together; waits for `go` first."""

    def __init__(self):
        self.go = threading.Event()
        self.calls = []

    def __call__(self, questions):
        assert self.go.wait(10)
        self.calls.append(list(questions))
        if 13 in questions:
            raise ValueError("unlucky")
        return [2 * one for one in questions]


def played(scene, together=3, waiting=4):
    """Run `scene(batcher, asked)` beside a batcher at work."""

    async def play():
        asked = Asked()
        batcher = Batcher(asked, together, waiting)
        work = asyncio.create_task(batcher.run())
        try:
            return await scene(batcher, asked)
        finally:
            asked.go.set()
            work.cancel()

    return asyncio.run(play())


async def begun(batcher, numbers):
    """Ask for numbers, in this order, without waiting for answers."""
    tasks = []
    for number in numbers:
        tasks.append(asyncio.create_task(batcher.answer(number)))
        await asyncio.sleep(0.02)
    return tasks


def test_what_waits_is_asked_together_in_its_order():
    async def scene(batcher, asked):
        tasks = await begun(batcher, [1, 2, 3, 4, 5])
        asked.go.set()
        return await asyncio.gather(*tasks), asked.calls

    answers, calls = played(scene)
    assert answers == [2, 4, 6, 8, 10]
    assert calls == [[1], [2, 3, 4], [5]]


def test_as_many_wait_as_may():
    async def scene(batcher, asked):
        tasks = await begun(batcher, range(5))  # one is being answered, four wait
        assert len(batcher) == 4
        with pytest.raises(TooMany):
            await batcher.answer(9)
        asked.go.set()
        await asyncio.gather(*tasks)
        return await batcher.answer(9)

    assert played(scene) == 18


def test_an_error_ends_its_call_alone():
    async def scene(batcher, asked):
        tasks = await begun(batcher, [1, 13, 2])
        asked.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [*found, await batcher.answer(4)]

    first, *wrong, last = played(scene)
    assert (first, last) == (2, 8)
    assert [str(one) for one in wrong] == ["unlucky", "unlucky"]


def test_who_has_gone_is_not_asked_for():
    async def scene(batcher, asked):
        tasks = await begun(batcher, [1, 2, 3])
        tasks[1].cancel()
        await asyncio.sleep(0)
        asked.go.set()
        await asyncio.gather(tasks[0], tasks[2])
        return asked.calls

    assert played(scene) == [[1], [3]]
