"""python -m benchmarks [--smoke] [--only NAME] [--output benchmarks/RESULTS.md]: one Markdown table."""

import argparse
import importlib
import os
import platform
import re
from pathlib import Path

import torch
from tqdm import tqdm

from benchmarks import BENCHMARKS

HEAD = ["| what | size | structperc | peer | ratio | target | met |", "|---|---|---|---|---|---|---|"]


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Timings side by side with peers.")
    parser.add_argument("--smoke", action="store_true", help="small sizes, no corpora: does everything run?")
    parser.add_argument("--only", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--output", type=Path, help="file whose section for this hardware is replaced")
    options = parser.parse_args()
    if options.smoke and options.output:
        parser.error("--smoke measures too little to be written to --output")
    rows = measure([options.only] if options.only else BENCHMARKS, options.smoke)
    lines = [line(row) for row in rows]
    print(section(hardware(), lines))
    if options.output:
        text = options.output.read_text(encoding="utf-8") if options.output.exists() else "# Benchmarks\n"
        options.output.write_text(replaced(text, hardware(), lines), encoding="utf-8")


def measure(names: list[str] | tuple[str, ...], smoke: bool) -> list[dict]:
    """Run the benchmarks one after the other."""
    rows = []
    for name in (bar := tqdm(names)):
        bar.set_description(name)
        rows += importlib.import_module(f"benchmarks.{name}").run(smoke)
    return [{**row, "target": None} for row in rows] if smoke else rows  # targets are for the full sizes


def hardware() -> str:
    """What the figures were measured on."""
    threads = torch.get_num_threads()
    parts = [f"{cpu()}, {os.cpu_count()} cores", f"torch {torch.__version__}", f"{threads} threads"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def cpu() -> str:
    """Name of the processor."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def line(row: dict) -> str:
    """A row of the table."""
    ours, peer = (figure(row[side], f" {row['unit']}") for side in ("ours", "peer"))
    return f"| {' | '.join([row['what'], row['size'], ours, peer, figure(row['ratio']), *goal(row)])} |"


def goal(row: dict) -> tuple[str, str]:
    """The target, and whether it is met."""
    if row["target"] is None:
        return "", ""
    most = row["target"].startswith("≤")
    bound, *unit = row["target"].strip("≤≥ ").split()
    value = row["ours"] if unit else row["ratio"]
    met = value <= float(bound) if most else value >= float(bound)
    return f"{'≤' if most else '≥'} {' '.join([bound, *unit])}", "yes" if met else "no"


def figure(value: float | None, unit: str = "") -> str:
    """Three significant digits, thousands in full."""
    if value is None:
        return ""
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}") + unit


def section(title: str, lines: list[str]) -> str:
    """A heading and a table."""
    return "\n".join([f"## {title}", "", *HEAD, *lines, ""])


def replaced(text: str, title: str, lines: list[str]) -> str:
    """The file with this hardware's rows brought up to date; what was not measured now stays."""
    before, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    tables = {s.partition("\n")[0][3:]: s for s in sections}
    old = [row for row in tables.get(title, "").splitlines() if row.startswith("| ") and row not in HEAD]
    fresh = {identity(row): row for row in [*old, *lines]}
    tables[title] = section(title, list(fresh.values()))
    return "\n\n".join([before.rstrip(), *(s.rstrip() for s in tables.values())]) + "\n"


def identity(row: str) -> str:
    """What and how much a row measures."""
    return "|".join(row.split("|")[1:3])


if __name__ == "__main__":
    main()
