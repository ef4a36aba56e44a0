"""`check_table`: everything that is wrong with a table and its images, before anything is trained on it."""

from kinfold.checks.duplicates import duplicate_findings
from kinfold.checks.finding import Finding, in_order
from kinfold.checks.images import Progress, look_at_all
from kinfold.checks.levels import level_findings
from kinfold.checks.names import name_findings
from kinfold.checks.readable import image_findings
from kinfold.checks.splits import split_findings
from kinfold.data.table import Table


def check_table(table: Table, *, workers: int = 0, progress: Progress | None = None) -> list[Finding]:
    """Look at all rows and all images of a table; nothing is changed or written.

    Every image is read once, in full (of a row with a box, the part inside the box). Looked for are: images that are missing, broken,
    blank or tiny; one picture with two labels, in two splits, or twice, also as a copy that was re-encoded, resized or brightened;
    names that look alike; classes that cannot be scored or form no pair; classes that leak from training into evaluation; levels
    that cross.

    Args:
        table: from `read_table` or `table_from_dataset`, or made by hand.
        workers: processes that read images, one thread each; 0 reads in the calling process.
        progress: called as `progress(done, of)` after every few images.

    Returns:
        What was found, errors first, then warnings, then notes. `docs/check.md` says what each code means.

    Raises:
        ConfigError: `workers` is negative.
        DataError: the table is made from a data set whose images are tensors.

    Example:
        >>> import numpy as np
        >>> from PIL import Image
        >>> from kinfold.data.datasets import table_from_dataset
        >>> noise = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
        >>> images = [Image.fromarray(pixels) for pixels in noise[[0, 1, 0, 2]]]
        >>> table = table_from_dataset(list(zip(images, ["owl", "owl", "wren", "wren"])))
        >>> [(finding.code, finding.rows) for finding in check_table(table) if finding.severity == "error"]
        [('two_labels', (0, 2))]
    """
    pictures = look_at_all(table, workers=workers, progress=progress)
    return in_order(
        [
            *image_findings(table, pictures),
            *duplicate_findings(table, pictures),
            *name_findings(table),
            *split_findings(table),
            *level_findings(table),
        ]
    )
