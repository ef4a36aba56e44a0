"""Pictures drawn from a seed that compress and resize as photographs do: coarse shapes, fine detail, soft edges."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from kinfold.checks.images import Look, Pictures, look_at
from kinfold.data.read import read_table
from kinfold.data.table import Table


def photo(seed: int, size: tuple[int, int] = (120, 90)) -> Image.Image:
    random = np.random.default_rng(seed)
    mixed = np.zeros((size[1], size[0], 3))
    for cells, weight in ((3, 1.0), (7, 0.7), (19, 0.7), (40, 0.3)):
        noise = Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        mixed += weight * np.asarray(noise.resize(size, Image.Resampling.BICUBIC), dtype=float)
    mixed = 0.5 * mixed + 0.5 * mixed.mean(axis=2, keepdims=True)  # photographs are mostly light and dark
    mixed = np.clip((mixed - mixed.mean()) / mixed.std() * 55 + 125, 0, 255)
    return Image.fromarray(mixed.astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))


def encoded(image: Image.Image, kind: str, **options: object) -> Image.Image:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return Image.open(io.BytesIO(file.getvalue())).convert("RGB")


def resized(image: Image.Image, factor: float, how: Image.Resampling = Image.Resampling.BICUBIC) -> Image.Image:
    return image.resize((round(image.width * factor), round(image.height * factor)), how)


def seen(images: list[Image.Image | None]) -> Pictures:
    """Return what a look at each image gives; `None` stands for one that cannot be read."""
    looks = [Look(fault="broken") if image is None else look_at(image.convert("RGB")) for image in images]
    return Pictures(
        fault={row: look.fault for row, look in enumerate(looks) if look.fault},
        size=np.array([look.size for look in looks]),
        digest=tuple(look.digest for look in looks),
        thumbnail=np.stack([np.zeros((32, 32, 3), np.uint8) if look.thumbnail is None else look.thumbnail for look in looks]),
        is_blank=np.array([look.is_blank for look in looks]),
    )


def table_of(folder: Path, images: list[tuple[Image.Image, str, str]]) -> Table:
    """Save images as PNG; each is (image, label, split)."""
    for row, (image, _, _) in enumerate(images):
        image.save(folder / f"{row}.png")
    return plain_table([label for _, label, _ in images], [split for _, _, split in images], root=folder)


def plain_table(label: list, split: list[str] | None = None, *, root: Path | None = None, **columns: list) -> Table:
    """Return a table whose rows lie in `0.png`, `1.png`, …"""
    split = split or ["train"] * len(label)
    path = [f"{row}.png" for row in range(len(label))]
    return read_table({"path": path, "label": label, "split": split, **columns}, root=root)
