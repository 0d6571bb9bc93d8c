"""What a service has been asked and how long it took, as Prometheus reads it."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BATCHES = (1, 2, 4, 8, 16, 32, 64)
SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


class Counters:
    """Counters of one service.

    Args:
        waiting: tells how many requests wait now.
    """

    def __init__(self, waiting: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        own = {"namespace": "structperc", "registry": self._registry}
        self._requests = Counter("requests", "Answered requests.", ["path", "status"], **own)
        self._seconds = Histogram("request_seconds", "From a request to its answer.", ["path"], buckets=SECONDS, **own)
        self._together = Histogram("batch_requests", "Requests labelled together.", buckets=BATCHES, **own)
        Gauge("waiting_requests", "Requests that wait.", **own).set_function(waiting)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def labelled(self, together: int) -> None:
        """Count a call of the tagger."""
        self._together.observe(together)

    def text(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self._registry)
