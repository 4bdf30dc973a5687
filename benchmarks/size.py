"""How much there is to read: lines of the trusted core and of everything, and the files that one job passes through.

python benchmarks/size.py           # prints them
python benchmarks/size.py --write   # and writes the paths into docs/architecture.md
"""

from __future__ import annotations

import argparse
import sys

from _paths import ROOT, count_lines, format_paths, trace

START, END = "<!-- paths: written by benchmarks/size.py --write -->\n", "<!-- end of paths -->\n"


def main() -> None:
    """Count, trace and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.add_argument("--write", action="store_true", help="write the paths into docs/architecture.md")
    asked = parser.parse_args()
    print("tracing a release, a search and a query", file=sys.stderr)
    paths = trace()
    print(format_paths(paths))
    if asked.write:
        page = ROOT / "docs" / "architecture.md"
        before, _, rest = page.read_text("utf-8").partition(START)
        page.write_text(before + START + format_paths(paths) + END + rest.partition(END)[2], "utf-8")
    print(f"core_lines: {count_lines('core')}")
    print(f"src_lines: {count_lines()}")
    for name, files in paths.items():
        print(f"files_{name}: {len(files)}")


if __name__ == "__main__":
    main()
