"""A folder per class, with or without train, val and test above → columns of cells."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kinfold.data.columns import SPLIT_NAMES, Columns
from kinfold.errors import DataError

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".jp2", ".avif"}
)
EXPECTED = "Expected: FOLDER/<class>/<image>, FOLDER/<group>/<class>/<image>, FOLDER/{train,val,test}/<class>/<image>, or FOLDER/table.csv."


def from_folder(folder: Path) -> tuple[Columns, tuple[str, ...]]:
    """Find the images below a folder and read class, split and groups off their folders' names.

    The class is the path of the image's folder below `folder` (and below the split): the same name under two parents makes two
    classes. Every parent folder is a group of a coarser level: `level_1` directly above the class, `level_2` above that. All
    images must lie equally deep. Hidden files, `._*` and `__MACOSX` are skipped; other files are skipped and counted.

    Returns:
        The cells, and notes for the table's summary.

    Raises:
        DataError: no image is found, or images do not lie equally deep.
    """
    images, n_skipped = [], 0
    for path in _files(folder):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            images.append(path)
        else:
            n_skipped += 1
    if not images:
        raise DataError(f"folder {str(folder)!r} holds no image. {EXPECTED}")
    has_splits = _has_splits(folder, images)
    n_above = 1 if has_splits or {path.parts[0] for path in images if len(path.parts) > 2} == {"images"} else 0
    places = [path.parent.parts[n_above:] for path in images]
    _check_depth(folder, images, places)
    cells: dict[str, list] = {"path": [str(path) for path in images], "label": ["/".join(place) for place in places]}
    if has_splits:
        cells["split"] = [path.parts[0] for path in images]
    for up in range(1, len(places[0])):
        cells[f"label.level_{up}"] = ["/".join(place[:-up]) for place in places]
    notes = (f"files skipped because they are no images: {n_skipped:,}",) if n_skipped else ()
    return Columns(f"folder {str(folder)!r}", cells), notes


def _files(folder: Path) -> Iterator[PurePosixPath]:
    """Yield the visible files below a folder, relative to it, in sorted order; follow links to folders, but not in circles."""
    seen = set()
    for current, subfolders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(current)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".") and name != "__MACOSX")
        for name in sorted(files):
            if not name.startswith("."):
                yield PurePosixPath(Path(current, name).relative_to(folder).as_posix())


def _has_splits(folder: Path, images: list[PurePosixPath]) -> bool:
    top = {path.parts[0] for path in images}
    if top <= set(SPLIT_NAMES):
        return True
    if "train" not in top:
        return False
    other = sorted(top - set(SPLIT_NAMES))
    raise DataError(
        f"folder {str(folder)!r} holds images in {', '.join(map(repr, other))} beside `train`: move them into train, val or test. {EXPECTED}"
    )


def _check_depth(folder: Path, images: list[PurePosixPath], places: list[tuple[str, ...]]) -> None:
    depths = {len(place): path for path, place in zip(images, places, strict=True)}
    if 0 in depths:
        raise DataError(f"folder {str(folder)!r}: {str(depths[0])!r} lies in no class folder. {EXPECTED}")
    if len(depths) > 1:
        shown = " and ".join(repr(str(path)) for path in list(depths.values())[:2])
        raise DataError(f"folder {str(folder)!r}: class folders lie at different depths, as {shown} do. {EXPECTED}")
