"""The page's further tables: the generator on a sphere (self_check.py), and what runs say of their classes (looked_at.py)."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean


def sections(results: Path) -> Iterator[str]:
    """Yield the tables that were recorded."""
    tables = {"against_stages": against_stages, "ratios": ratios, "self_check": self_check, "looked_at": looked_at}
    for name, table in tables.items():
        file = results / f"{name}.json"
        if file.exists():
            yield table(json.loads(file.read_text(encoding="utf-8")))


def against_stages(found: dict) -> str:
    """Return the table of differences to the two stages without a generated class."""
    lines = ["### Against both stages without a generated class", ""]
    lines += ["Differences with 95 % intervals over seeds and queries.", ""]
    lines += ["| grid, data set | | Recall@1 | R-Precision | MAP@R |", "| --- | --- | --- | --- | --- |"]
    for name, rows in found.items():
        for row in rows[1:]:
            cells = [difference(row["differences"][metric]) for metric in ("recall_at_1", "r_precision", "map_at_r")]
            lines.append(f"| {name.replace('_', ' ').replace('/', ', ')} | {row['note'].split(':')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def ratios(found: dict) -> str:
    """Return the table of several numbers of novel classes, against both stages with none."""
    rows = found["datasets"][""]
    lines = [f"### How many novel classes: groceries, Proxy-NCA, frozen lane, {len(rows[0]['seeds'])} seeds", ""]
    lines += ["| novel classes | Recall@1 | MAP@R |", "| --- | --- | --- |"]
    for row in rows:
        cells = [f"{100 * row['values'][metric]['mean']:.1f}" for metric in ("recall_at_1", "map_at_r")]
        if row["differences"]:
            cells = [
                f"{cell}, {difference(row['differences'][metric])}"
                for cell, metric in zip(cells, ("recall_at_1", "map_at_r"), strict=True)
            ]
        lines.append(f"| {row['note'] or 'none'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def difference(found: dict) -> str:
    """Return a difference in percent with its interval."""
    low, high = (100 * end for end in found["over_queries"])
    return f"{100 * found['mean']:+.2f} [{low:+.2f}, {high:+.2f}]"


def self_check(found: dict) -> str:
    """Return the table of the generator on a sphere."""
    lines = ["### The generator alone: 20 Gaussians on a sphere in 64 dimensions, 40 novel classes", ""]
    lines += [
        f"{found['steps']:,} steps; means over {len(next(iter(found['cells'].values())))} seeds. The last column is what mixtures of two real proxies have in the place of the one before.",
        "",
        "| loss, divergence, spread | own proxy | nearest real proxy | of Proxy Synthesis | mean apart | variance | width, least and most |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines[2] = lines[2].replace("The last column", "The third column")
    for name, rows in found["cells"].items():
        each = {key: mean(row[key] for row in rows) for key in rows[0]}
        lines.append(
            f"| {name} | {each['own_similarity']:.2f} | {each['novel_to_real_max']:.2f} | {each['novel_to_real_max_of_proxy_synthesis']:.2f} | "
            f"{each['mean_apart']:.3f} | {each['variance_ratio']:.2f} | {each['within_min']:.2f} to {each['within_max']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def looked_at(found: dict) -> str:
    """Return the table of what the runs' generated classes are like, and how near they are to unseen ones."""
    lines = ["### What the generated classes are like", ""]
    lines += [
        "| run | own proxy, mean and least | real proxies, mean and nearest | width | generated → unseen | training → unseen | unseen → generated | unseen → training |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found.items():
        numbers, rows = row["show"], row["align"]
        width = numbers["generated_variance"]
        cells = [
            f"{numbers['novel_own_similarity']:.2f}, {numbers['novel_own_similarity_min']:.2f}",
            f"{numbers['novel_real_similarity']:.2f}, {numbers['novel_real_similarity_max']:.2f}",
            "–" if width is None else f"{width:.2f}",
        ]
        for pair in ("generated → unseen", "training → unseen", "unseen → generated", "unseen → training"):
            cells.append(f"{rows[pair]['forward']:.2f}, {rows[pair]['backward']:.2f}" if rows else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "Divergences: KL(one ‖ other) / d, KL(other ‖ one) / d of the nearest class; smaller is nearer."]
    return "\n".join(lines) + "\n"
