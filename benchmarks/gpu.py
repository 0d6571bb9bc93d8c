"""Checks and timings of the operators on a GPU, sections of `benchmarks/gpu.sh`: python -m benchmarks.gpu SECTION.

Without a GPU the checks run in Triton's interpreter, on fewer and smaller lattices; there are no timings then.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from structperc.chain import kbest, log_partition, path_score, viterbi
from structperc.nn import ChainHead
from structperc.ops.registration import implementation
from structperc.structures import Lattice

GPU = torch.cuda.is_available()
if not GPU:  # read when Triton is imported, on first use of a kernel
    os.environ.setdefault("TRITON_INTERPRET", "1")
DEVICE = "cuda" if GPU else "cpu"
SIZES = [(64, 50, 9), (1024, 512, 9), (256, 128, 45), (32, 512, 400)]  # (B, T, L)
LONG = [(1, 16384, 9), (8, 16384, 9)]
EXACT = {"rtol": 0, "atol": 0}
NEAR = {"rtol": 1e-5, "atol": 1e-4}


class Call(NamedTuple):
    """An operator and what it takes besides a lattice."""

    name: str
    more: tuple[Any, ...] = ()


class Kind(NamedTuple):
    """A kind of lattices: random ones, and the operators and functions of them that are checked."""

    tables: Callable[..., tuple[Tensor, ...]]  # of a size
    operators: Callable[[int, int], list[Call]]  # for B sequences of T tokens
    decode: Callable[..., tuple[Tensor, ...]]
    kbest: Callable[..., Any]
    gradients: Callable[..., tuple[Tensor, ...]]  # of a loss or a sum, and that


SEARCHES = [Call("viterbi"), Call("kbest", (20,))]
OPERATORS = [*SEARCHES, Call("best_before_and_after"), Call("forward_backward", (True,)), Call("local_log_partition")]


def tables(B: int, T: int, L: int, stationary: bool = True, ragged: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return random scores (B, T, L), (1, 1, L, L) or (B, T, L, L), and lengths (B,) on the device."""
    torch.manual_seed(L)
    unary, edge = torch.randn(B, T, L) * 3, torch.randn(*((1, 1) if stationary else (B, T)), L, L)
    lengths = torch.randint(T // 2, T + 1, (B,)) if ragged else torch.full((B,), T)
    return unary.to(DEVICE), edge.to(DEVICE), lengths.to(DEVICE)


def results(call: Call, lattice: tuple[Tensor, ...], device: str = "cuda") -> tuple[Tensor, ...]:
    """Return the results of an operator as implemented for a device."""
    found = implementation(device, call.name)(*lattice, *call.more)
    return found if isinstance(found, tuple) else (found,)


def check_label_counts() -> str:
    """Compare every operator with the reference, for each number of labels from 2 to 130."""
    sizes = range(2, 131) if GPU else (2, 17)
    for L in sizes:
        for stationary in (True, False):
            compare_with_reference(OPERATORS, tables(3, 6, L, stationary))
    return f"{len(sizes)} numbers of labels, {len(OPERATORS)} operators, one matrix and edges of each token"


def compare_with_reference(calls: list[Call], lattice: tuple[Tensor, ...]) -> None:
    """Compare operators with the reference on a lattice."""
    for call in calls:
        for x, y in zip(results(call, lattice), results(call, lattice, "reference"), strict=True):
            torch.testing.assert_close(x, y, **(NEAR if x.is_floating_point() else EXACT))


def check_repeats(kind: Kind, runs: int, sizes: list[tuple[int, ...]]) -> str:
    """Compare the bits of repeated runs, gradients included."""
    for size in sizes:
        first, calls = None, kind.operators(*size[:2])
        for _ in range(runs):
            found = [x for call in calls for x in results(call, kind.tables(*size))]
            found += kind.gradients(*kind.tables(*size))
            first = first or found
            if not all(x.equal(y) for x, y in zip(first, found, strict=True)):
                raise AssertionError(f"runs differ at {size}")
    return f"{runs} runs with equal bits at {sizes}"


def gradients(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Return the loss of a CRF and its gradients."""
    inputs = unary.requires_grad_(), edge.requires_grad_()
    value = crf_loss(Lattice(unary, edge, lengths)).sum()
    return value.detach(), *torch.autograd.grad(value, inputs)


def crf_loss(lattice: Lattice) -> Tensor:
    """Return the negative log-likelihood (B,) of the labels 0, 1, 0, 1, ..."""
    B, T, _ = lattice.unary.shape
    gold = (torch.arange(T, device=lattice.unary.device) % 2).expand(B, T)
    return log_partition(lattice) - path_score(lattice, gold)


def check_scratch_memory(kind: Kind, size: tuple[int, ...]) -> str:
    """Compare results with those of memory that is NaN wherever a kernel has not written."""
    lattice, calls = kind.tables(*size), kind.operators(*size[:2])
    expected = [x for call in calls for x in results(call, lattice)]
    torch.use_deterministic_algorithms(True)  # fills new memory with NaN, or the largest integer
    try:
        found = [x for call in calls for x in results(call, lattice)]
    finally:
        torch.use_deterministic_algorithms(False)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, **EXACT)
    return f"{len(calls)} operators at {size}"


def check_chunks() -> str:
    """Compare the scan over chunks of long sequences with one program per sequence: labels, sums, repeated runs."""
    size, tokens = ((3, 16384, 9), 128) if GPU else ((2, 5, 3), 2)
    unary, edge, lengths = tables(*size)
    lattice, runs = (unary.round(), edge.round(), lengths), []
    for length in (size[1], tokens, tokens):
        with chunks_of(length):
            runs.append([*results(SEARCHES[0], lattice), *results(Call("forward_backward", (True,)), lattice)])
    for x, y, again in zip(*runs, strict=True):
        torch.testing.assert_close(x, y, **(NEAR if x.is_floating_point() else EXACT))
        torch.testing.assert_close(y, again, **EXACT)
    return f"Viterbi and forward-backward at {size}, chunks of {tokens} tokens"


@contextmanager
def chunks_of(tokens: int) -> Iterator[None]:
    """Divide sequences into chunks of that many tokens; of T tokens: one program per sequence."""
    from structperc.ops.cuda import chunks

    choice = chunks.chunk_length
    chunks.chunk_length = lambda B, T, L: min(T, tokens) if L <= chunks.LABELS else T
    try:
        yield
    finally:
        chunks.chunk_length = choice


def check_graphs(kind: Kind, size: tuple[int, ...]) -> str:
    """Capture a search, and a sum with gradient, in a CUDA graph; compare a replay on other scores."""
    for what, function in (("search", kind.decode), ("sum with gradient", kind.gradients)):
        given, other = kind.tables(*size), kind.tables(*size)
        other[0].mul_(-1)
        expected = function(*other)
        replay, found = captured(function, given)
        with torch.no_grad():
            for x, y in zip(given, other, strict=True):
                x.copy_(y)
        replay()
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x, y, **EXACT, msg=lambda text, what=what: f"{what}: {text}")
    return f"search, and sum with gradient, at {size}"


def decode(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Return the score and the labels of the best label sequences."""
    return viterbi(Lattice(unary, edge, lengths))


def best_20(unary: Tensor, edge: Tensor, lengths: Tensor) -> Any:
    """Return the 20 best label sequences."""
    return kbest(Lattice(unary, edge, lengths), 20)


CHAIN = Kind(tables, lambda B, T: OPERATORS, decode, best_20, gradients)


def captured(function: Callable[..., Any], given: tuple[Tensor, ...]) -> tuple[Callable[[], None], Any]:
    """Return what replays a function on the memory of its arguments, and the results that each replay fills."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):  # compiles, and allocates what the capture may not
            function(*given)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = function(*given)
    return graph.replay, found


def check_compilations() -> str:
    """Count compilations of kernels while lengths and batch sizes change: none after the first batches."""
    from triton import knobs

    count = 0

    def add(**_: Any) -> None:
        nonlocal count
        count += 1

    for B, T in ((7, 33), (8, 48), (1, 1), (16, 16)):  # sizes divisible by 16, and others
        results(OPERATORS[0], tables(B, T, 9))
    knobs.runtime.jit_post_compile_hook = add
    try:
        for T in range(2, 60):
            results(OPERATORS[0], tables(1 + T % 13, T, 9))
    finally:
        knobs.runtime.jit_post_compile_hook = None
    if count:
        raise AssertionError(f"{count} compilations for other lengths")
    return "58 lengths, no compilation"


def check_synchronisation(kind: Kind, size: tuple[int, ...]) -> str:
    """Run searches and a sum with gradient while torch forbids reads by the host."""
    lattice, functions = kind.tables(*size), (kind.decode, kind.kbest, kind.gradients)
    for function in functions:
        function(*lattice)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for function in functions:
            function(*lattice)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "search, k best, sum with gradient"


def shared_checks(kind: Kind, runs: int, sizes: list[tuple[int, ...]]) -> dict[str, Callable[[], str]]:
    """Return the checks of any kind of lattices by name, at sizes of which the first is for all checks."""
    found = {
        "repeats": lambda: check_repeats(kind, runs, sizes),
        "scratch memory": lambda: check_scratch_memory(kind, sizes[0]),
    }
    on_gpu = {
        "graphs": lambda: check_graphs(kind, sizes[0]),
        "synchronisation": lambda: check_synchronisation(kind, sizes[0]),
    }
    return {**found, **on_gpu} if GPU else found


def run_checks(checks: dict[str, Callable[[], str]]) -> bool:
    """Run checks, print one line each, and return whether all passed."""
    passed = True
    for name, check in checks.items():
        start = time.perf_counter()
        try:
            found = f"passed: {check()}"
        except Exception as error:  # a report of all checks is wanted, whatever one of them finds
            passed, found = False, f"FAILED: {type(error).__name__}: {error}"
        print(f"* {name}: {found} ({time.perf_counter() - start:.1f} s)", flush=True)
    return passed


def run_small() -> bool:
    """Run every operator once on small lattices, for compute-sanitizer."""
    for L in (3, 9, 45):
        for stationary in (True, False):
            for call in OPERATORS:
                results(call, tables(5, 7, L, stationary))
            with chunks_of(3):
                gradients(*tables(5, 7, L, stationary))
                results(SEARCHES[0], tables(5, 7, L, stationary))
            gradients(*tables(5, 7, L, stationary))
    return True


def microseconds(function: Callable[[], object], least: float = 0.3) -> float:
    """Return the time of a call between two events of the device, the mean over a run of calls."""
    function()
    calls, spent = 1, 0.0
    while spent < 1000 * least:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        spent, calls = start.elapsed_time(end), 2 * calls
    return 1000 * spent / (calls // 2)


def run_times() -> bool:
    """Print a table of the operators at each size, against peers."""
    if not GPU:
        print("no GPU: no timings")
        return True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds a call, and tokens a second\n")
    print(
        "| what | (B, T, L) | structperc | in a CUDA graph | tokens/s | plain tensors | pytorch-crf | CPU + transfer |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        for what, ours, plain, peer in rows_at(*size):
            given = tables(*size, ragged=False)
            calls = microseconds(lambda ours=ours, given=given: ours(*given))
            replay, _ = captured(ours, given)
            figures = [calls, microseconds(replay), 1e6 * size[0] * size[1] / calls]
            figures += [once(lambda f=f, given=given: f(*given)) if f else None for f in (plain, peer)]
            figures.append(once(lambda ours=ours, given=given: on_cpu(ours, given)))
            print(f"| {what} | {size} | {' | '.join(map(shown, figures))} |", flush=True)
    run_long_times()
    return True


def run_long_times() -> None:
    """Print a table of few long sequences: in chunks, and with one program per sequence."""
    print("\n| what | (B, T, L) | in chunks | in a CUDA graph | one program per sequence | in a CUDA graph |")
    print("|---|---|---|---|---|---|")
    for size in LONG:
        for what, function in (("Viterbi", decode), ("loss with gradient", gradients)):
            figures = []
            for tokens in (None, size[1]):
                with chunks_of(tokens) if tokens else nullcontext():
                    given = tables(*size, ragged=False)
                    figures.append(microseconds(lambda f=function, given=given: f(*given)))
                    figures.append(microseconds(captured(function, given)[0]))
            print(f"| {what} | {size} | {' | '.join(map(shown, figures))} |", flush=True)


def shown(figure: float | None) -> str:
    """Return a figure of three digits."""
    return "" if figure is None else f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def rows_at(B: int, T: int, L: int) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any], Any]]:
    """Yield the name of a row, our function, that of plain tensors, and that of pytorch-crf or None."""
    peer = torch_crf(B, T, L)
    yield "Viterbi", decode, reference(viterbi), peer and (lambda *given: peer.decode(given[0]))
    yield "k-best 20", best_20, reference(lambda lattice: kbest(lattice, 20)), None
    gold = torch.randint(L, (B, T), device=DEVICE)

    def peer_loss(unary: Tensor, *_: Tensor) -> None:
        (-peer(unary.requires_grad_(), gold)).backward()

    yield "loss with gradient", gradients, plain_gradients, peer and peer_loss


def torch_crf(B: int, T: int, L: int) -> Any:
    """Return pytorch-crf's module; None where it is not installed."""
    try:
        from torchcrf import CRF
    except ImportError:
        return None
    return CRF(L, batch_first=True).to(DEVICE)


def reference(search: Callable[[Lattice], Any]) -> Callable[..., Any]:
    """Return a search by the reference in plain tensors."""
    name, more = ("viterbi", ()) if search is viterbi else ("kbest", (20,))
    return lambda *given: implementation("reference", name)(*given, *more)


def plain_gradients(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Return log Z and its gradients by the reference in plain tensors."""
    return implementation("reference", "forward_backward")(unary.detach(), edge.detach(), lengths, True)


def on_cpu(function: Callable[..., Any], given: tuple[Tensor, ...]) -> None:
    """Run a function on a CPU: scores are copied there, results back."""
    found = function(*(x.detach().cpu() for x in given))
    for x in found if isinstance(found, tuple) else (found,):
        x.to(DEVICE)


def once(function: Callable[[], object]) -> float | None:
    """Return the microseconds of the second of two calls; None if memory does not suffice."""
    try:
        function()
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - start)
    except torch.cuda.OutOfMemoryError:
        return None


def run_encoder() -> bool:
    """Print the share of a training step of a BERT-base-shaped encoder that the head takes."""
    if not GPU:
        print("no GPU: no timings")
        return True
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    B, T = 16, 512
    encoder = BertModel(BertConfig(), add_pooling_layer=False).to(DEVICE)
    ids = torch.randint(1000, 30000, (B, T), device=DEVICE)
    print("| (B, T) | L | precision | step with a softmax, ms | step with ChainHead, ms | share of the head |")
    print("|---|---|---|---|---|---|")
    for L in (9, 33):
        names = ["O", *(f"{p}-{n}" for n in range((L - 1) // 2) for p in "BI")]
        head, linear = ChainHead(names).to(DEVICE), nn.Linear(768, L).to(DEVICE)
        gold = torch.zeros(B, T, dtype=torch.int64, device=DEVICE)
        mask = torch.ones(B, T, dtype=torch.bool, device=DEVICE)
        for half in (False, True):

            def logits(linear: nn.Module = linear) -> Tensor:
                return linear(encoder(ids).last_hidden_state)

            def softmax(half: bool = half, gold: Tensor = gold) -> None:
                with precision(half):
                    nn.functional.cross_entropy(logits().flatten(0, 1), gold.flatten()).backward()

            def chain(half: bool = half, head: ChainHead = head, gold: Tensor = gold, mask: Tensor = mask) -> None:
                with precision(half):
                    head(logits(), gold, mask).backward()

            without, together = microseconds(softmax, 1.0) / 1000, microseconds(chain, 1.0) / 1000
            share, kind = 1 - without / together, "bf16 autocast" if half else "float32"
            print(f"| ({B}, {T}) | {L} | {kind} | {without:.1f} | {together:.1f} | {share:.1%} |", flush=True)
    return True


@contextmanager
def precision(half: bool) -> Iterator[None]:
    """Compute in bfloat16 where torch's autocast does so, or in float32."""
    with torch.autocast(DEVICE, torch.bfloat16, enabled=half):
        yield


def chain_checks() -> dict[str, Callable[[], str]]:
    """Return the checks of chains by name."""
    runs, sizes = (100, [(64, 50, 9), (32, 50, 45)]) if GPU else (3, [(3, 5, 9)])
    own = {"numbers of labels": check_label_counts, "chunks": check_chunks}
    return {**own, **shared_checks(CHAIN, runs, sizes), **({"compilations": check_compilations} if GPU else {})}


SECTIONS = {
    "checks": lambda: run_checks(chain_checks()),
    "small": run_small,
    "times": run_times,
    "encoder": run_encoder,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description="A section of benchmarks/gpu.sh.")
    parser.add_argument("section", choices=SECTIONS)
    sys.exit(not SECTIONS[parser.parse_args().section]())
