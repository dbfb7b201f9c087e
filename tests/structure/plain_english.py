#!/usr/bin/env python3
"""Reminds of words that a native engineer would not write (words_to_avoid.tsv).

In the pages that users read first, each use must be listed in words_allowed.tsv, or this fails. In the journal, the
reference and the strings of C++ the uses are only counted. --list prints every counted use as well.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Iterator, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHECKED = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guides/*.md", "docs/explanation/*.md",
           "docs/reference/glossary.md")
COUNTED = ("docs/journal/*.md", "docs/reference/*.md")
SOURCES = ("base", "calibration", "cli", "gui", "hardware_profiles", "models", "planner", "program", "report", "runtime",
           "simulator")
FEWEST_WORDS = 3  # shorter literals are names, not sentences


class Use(NamedTuple):
    file: str
    line: int
    words: str
    instead: str
    text: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: "{self.words}": write {self.instead}\n    {self.text.strip()}'


def rows_of(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    for row in rows:
        if len(row) != 2:
            sys.exit(f"{path}: a row needs two columns, divided by a tab: {row[0]}")
    return rows


def prose_of(page: str) -> Iterator[tuple[int, str]]:
    """Lines of a page of Markdown without blocks, code, links' targets and table rules; from 1."""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "``", line))


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    """String literals of at least FEWEST_WORDS words, adjacent ones joined, without comments; line of the first."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
    pieces: list[str] = []
    start = end = 0
    for match in token.finditer(source):
        literal = match[3] if match[3] is not None else match[2]
        if literal is None:
            continue
        if pieces and source[end:match.start()].strip():
            yield source.count("\n", 0, start) + 1, "".join(pieces)
            pieces = []
        if not pieces:
            start = match.start()
        pieces.append(literal)
        end = match.end()
    if pieces:
        yield source.count("\n", 0, start) + 1, "".join(pieces)


def is_sentence(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= FEWEST_WORDS


class Words:
    def __init__(self, avoid: list[list[str]], allowed: list[list[str]]):
        self.avoid = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in avoid]
        self.allowed = allowed

    def uses(self, file: str, lines: Iterator[tuple[int, str]]) -> Iterator[Use]:
        for number, text in lines:
            rest = text
            for where, phrase in self.allowed:
                if where in ("*", file):
                    rest = rest.replace(phrase, "")
            for pattern, instead in self.avoid:
                for match in pattern.finditer(rest):
                    yield Use(file, number, match[0], instead, text)


def files_of(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


def look(root: Path, words: Words) -> tuple[list[Use], list[Use], list[Use]]:
    """Uses in the pages that are checked, in the other pages, and in strings of the sources."""
    def in_pages(paths: list[Path]) -> list[Use]:
        return [use for path in paths
                for use in words.uses(path.relative_to(root).as_posix(), prose_of(path.read_text(encoding="utf-8")))]
    checked = files_of(root, CHECKED)
    others = [path for path in files_of(root, COUNTED) if path not in checked]
    sources = files_of(root, tuple(f"{folder}/**/*.{ending}" for folder in SOURCES for ending in ("h", "cpp", "cu")))
    strings = [use for path in sources
               for use in words.uses(path.relative_to(root).as_posix(),
                                     (one for one in strings_of(path.read_text(encoding="utf-8"))
                                      if is_sentence(one[1])))]
    return in_pages(checked), in_pages(others), strings


def check_itself() -> None:
    """A made-up tree whose every kind of use must be found, and nothing else."""
    words = Words([[r"\balone\b", "only"]], [["*", "left alone"], ["docs/a.md", "alone in the park"]])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docs" / "journal").mkdir(parents=True)
        (root / "cli").mkdir()
        (root / "README.md").write_text("A page alone.\n\n```\nalone\n```\n`alone` is code, [a link](alone.md).\n")
        (root / "docs" / "a.md").write_text("It is left alone.\nWe walk alone in the park.\nAlone again.\n")
        (root / "docs" / "journal" / "b.md").write_text("Here alone.\n")
        (root / "cli" / "a.cpp").write_text('// alone in a comment here\nf("two alone");\n'
                                            'g("this works "\n  "with it alone", "alone");\n')
        checked, counted, strings = look(root, words)
    found = [(use.file, use.line) for use in checked + counted + strings]
    expected = [("README.md", 1), ("docs/a.md", 3), ("docs/journal/b.md", 1), ("cli/a.cpp", 3)]
    if found != expected:
        sys.exit(f"plain_english.py does not find what it should: {found} instead of {expected}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every counted use, too")
    options = parser.parse_args()
    check_itself()
    words = Words(rows_of(HERE / "words_to_avoid.tsv"), rows_of(HERE / "words_allowed.tsv"))
    checked, counted, strings = look(ROOT, words)
    for use in checked + (counted + strings if options.list else []):
        print(use)
    print(f"words to avoid: {len(checked)} in checked pages (words_allowed.tsv lists exceptions), "
          f"{len(counted)} in journal and reference, {len(strings)} in strings of the sources (only counted)")
    return 1 if checked else 0


if __name__ == "__main__":
    sys.exit(main())
