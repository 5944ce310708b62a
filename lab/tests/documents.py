"""The product's pages say what the lab's figures and the code say, and the links of both lead somewhere."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
ROOT = LAB.parent
sys.path.insert(0, str(LAB / "benches"))

import ratios  # noqa: E402
import then_and_now  # noqa: E402


def rows_of(text):
    """The lines of tables, without their dashes."""
    return [line for line in text.splitlines() if line.startswith("|") and set(line) - set("|- ")]


def anchors_of(text):
    """The names of a page's headings, as a link writes them."""
    heads = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
    plain = [re.sub(r"\]\([^)]*\)", "", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


def files_named(*patterns):
    """The text of the repository's files whose paths match, without tests inside Rust files."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return "\n".join((ROOT / name).read_text().partition("#[cfg(test)]")[0] for name in listed.stdout.split())


class Documents(unittest.TestCase):
    def test_the_page_of_ratios_is_written_from_the_tables(self):
        tables = (LAB / "figures/benchmarks.md").read_text()
        self.assertEqual((ROOT / "docs/benchmarks.md").read_text(), ratios.document(tables))

    def test_then_and_now_is_as_it_would_be_written(self):
        page = (LAB / "figures/then-and-now.md").read_text()
        empty = [{"gpu": gpu, "only": "nothing", "sections": [],
                  "machine": {"device": {"name": "-"}, "date": "", "commit": ""}} for gpu in (False, True)]
        self.assertEqual(page, then_and_now.document(empty, page))

    def test_rows_of_the_quality_page_stand_in_the_tables(self):
        files = [LAB / "figures/quality.md", LAB / "figures/real-pictures.md"]
        tables = {row for file in files for row in rows_of(file.read_text())}
        page = rows_of((ROOT / "docs/quality.md").read_text())
        self.assertGreater(len(page), 50)
        self.assertEqual([row for row in page if row not in tables], [])

    def test_the_station_reference_names_every_metric_and_key(self):
        pages = files_named("*station-reference.md", "*machine-reference.md")
        reads = r"\b(?:string|text|boolean|seconds|milliseconds|numbers?|whole|range|choice|tables?|value|element)"
        names = {*re.findall(r'"((?:clinspect|process)_\w+)"', files_named("*metrics.rs")),
                 *re.findall(reads + r'\(\s*(?:&mut \w+, )?"([a-z-]+)"', files_named("*config.rs", "*config/*.rs"))}
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in sorted(names) if not re.search(rf"[`\[]{name}[`\]]", pages)], [])

    def test_links_lead_somewhere(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("station/*.md"),
                 *ROOT.glob("station/docs/*.md"), *LAB.glob("*.md"), *LAB.glob("[fn]*/*.md")]
        dead = []
        for page in pages:
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                found = (page.parent / path).resolve() if path else page
                if not found.exists():
                    dead.append(f"{page.relative_to(ROOT)}: {target}")
                elif anchor and found.suffix == ".md" and anchor not in anchors_of(found.read_text()):
                    dead.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(dead, [], "dead links")


if __name__ == "__main__":
    unittest.main()
