"""How long the training part of an epoch takes, in the words in which `fit` tells it."""

from time import perf_counter


class EpochClock:
    """Runs from when it is made to the last mini-batch of an epoch; what is done with development data is not in it."""

    def __init__(self) -> None:
        self._start, self.seconds = perf_counter(), 0.0

    def stop(self) -> None:
        """Stop the clock."""
        self.seconds = perf_counter() - self._start

    def told(self, updates: int) -> str:
        """Return updates and seconds as a person reads them: "1,735 updates in 0.194 s".

        An epoch that is cut short ends now.
        """
        if not self.seconds:
            self.stop()
        return f"{updates:,} updates in {self.seconds:.3f} s"
