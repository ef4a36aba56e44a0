"""`kinfold cache`: what is kept of frozen models' outputs, and clearing it."""

import time
from typing import Any

from kinfold.commands.output import print_json, print_table, say
from kinfold.errors import ConfigError, did_you_mean
from kinfold.models.feature_cache import FeatureCache, cache_folder

DAY = 86_400


def cache_ls_command(folder: str | None, *, as_json: bool) -> None:
    """Print one line for each entry, last used first."""
    cache = FeatureCache(cache_folder(folder))
    entries = cache.entries()
    if as_json:
        print_json({"folder": str(cache.folder), "entries": entries})
        return
    total = sum(entry["bytes"] for entry in entries)
    if entries:
        print_table(
            ["key", "trunk", "up to", "view", "rows", "MB", "last used"], [_row(entry) for entry in entries], numbers=False
        )
    print(f"{len(entries)} entries, {total / 1e6:,.1f} MB in {cache.folder}")


def cache_clear_command(keys: list[str], folder: str | None, *, unused_days: float | None) -> None:
    """Remove the entries named (the first digits are enough), those not used for some days, or all."""
    cache = FeatureCache(cache_folder(folder))
    entries = cache.entries()
    chosen = entries if not keys else [entry for key in keys for entry in _matching(key, entries)]
    if unused_days is not None:
        chosen = [entry for entry in chosen if time.time() - entry["used"] > unused_days * DAY]
    for entry in {entry["key"]: entry for entry in chosen}.values():
        cache.clear(entry["key"])
    say(f"removed {len(chosen)} of {len(entries)} entries, {sum(entry['bytes'] for entry in chosen) / 1e6:,.1f} MB")


def _matching(key: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [entry for entry in entries if entry["key"].startswith(key)]
    if not found:
        raise ConfigError(f"the cache has no entry {key!r}: {did_you_mean(key, [entry['key'] for entry in entries])}")
    return found


def _row(entry: dict[str, Any]) -> list[str]:
    view = entry.get("view", {})
    size = view.get("preprocessing", {}).get("size", "?")
    kind = "random views" if "crop_scale" in view else "evaluation view"
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["used"]))
    megabytes = f"{entry['bytes'] / 1e6:,.1f}"
    return [
        entry["key"],
        entry.get("trunk", "?"),
        entry.get("part", "?"),
        f"{size} px, {kind}",
        f"{entry['rows']:,}",
        megabytes,
        used,
    ]
