"""Build the site: `python -m docs.build` writes docs/_build/html; any warning is an error.

Needs the extra "docs": pip install -e ".[docs]" -c constraints.txt
"""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run Sphinx; -> its exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description="Build the documentation site.")
    parser.add_argument("--draft", action="store_true", help="print warnings, but do not fail because of them")
    parser.add_argument("--fresh", action="store_true", help="delete docs/_build first")
    parser.add_argument("--linkcheck", action="store_true", help="also open all links to other sites (network)")
    parser.add_argument("-j", "--jobs", default="1", help="number of processes, or auto")
    options = parser.parse_args(arguments)
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        parser.error('Sphinx is missing: pip install -e ".[docs]" -c constraints.txt')
    target = HERE / "_build"
    if options.fresh:
        shutil.rmtree(target, ignore_errors=True)
    strict = [] if options.draft else ["--fail-on-warning"]
    for builder in ["html", *(["linkcheck"] if options.linkcheck else [])]:
        folders = [str(HERE), str(target / builder), "-d", str(target / "doctrees")]
        if status := build_main(["-b", builder, "-q", "-j", options.jobs, *strict, *folders]):
            return status
    print(f"written: {target / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
