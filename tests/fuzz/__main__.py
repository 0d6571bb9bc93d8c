"""python -m fuzz [NUMBER ...]: what became of cases, with counts; `--cases N` means 0 to N - 1."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import KINDS, Case, Fuzzer
from tests.fuzz.outcome import FINE, Outcome


def table(cases: list[Case]) -> str:
    """Counts by kind and outcome."""
    counts = Counter((case.kind, case.judged.outcome) for case in cases)
    lines = [f"{'':15}" + "".join(f"{outcome.value:>26}" for outcome in Outcome)]
    for kind in (*(kind.__name__ for kind in KINDS), "all"):
        row = [
            sum(n for (of, what), n in counts.items() if what == outcome and kind in (of, "all")) for outcome in Outcome
        ]
        lines.append(f"{kind:15}" + "".join(f"{n:26}" for n in row))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser("fuzz")
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--kind", help="only this one")
    parser.add_argument("--all", action="store_true", help="show what went well, too")
    parser.add_argument("--debug", action="store_true", help="show what the commands write to standard error")
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    numbers = options.numbers or range(options.start, options.cases)
    done = []
    with tempfile.TemporaryDirectory() as scratch:
        fuzzer = Fuzzer(Path(scratch))
        for number in numbers:
            if options.kind and KINDS[number % len(KINDS)].__name__ != options.kind:
                continue
            done.append(fuzzer(number, ["--debug"] * options.debug))
            if options.all or done[-1].judged.outcome not in FINE:
                print(done[-1], flush=True)
                print(done[-1].ran.err, end="") if options.debug else None
    print(table(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
