"""A hierarchy as a text tree, from coarse to fine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kinfold.core.hierarchy import Hierarchy, Level, Name
from kinfold.errors import ConfigError, DataError


def tree_lines(hierarchy: Hierarchy, *, counts: Mapping[Name, int] | None = None, max_members: int = 8) -> list[str]:
    """Return a hierarchy as lines of text: the coarsest groups first, the classes at the tips.

    Args:
        hierarchy: groups and classes keep its order.
        counts: images of each class; if given, every line ends with the images below it.
        max_members: classes shown below a group of the finest level, >= 0; the rest is one line, `… 3 more classes`. Groups are
            never left out.

    Raises:
        ConfigError: `max_members` is negative.
        DataError: a class has no count.

    Example:
        >>> from kinfold.core.hierarchy import hierarchy_from_groups
        >>> tree = hierarchy_from_groups(["oak", "elm", "fly"], {"kind": ["tree", "tree", "insect"]})
        >>> for line in tree_lines(tree, counts={"oak": 20, "elm": 5, "fly": 1}):
        ...     print(line)
        3 classes, 26 images (kind → class)
        ├── tree: 2 classes, 25 images
        │   ├── oak: 20 images
        │   └── elm: 5 images
        └── insect: 1 class, 1 image
            └── fly: 1 image
    """
    if max_members < 0:
        raise ConfigError(f"max_members = {max_members}: give 0 (groups only) or more.")
    images = None if counts is None else class_counts(hierarchy, counts)
    order = " → ".join((*reversed(hierarchy.names), "class"))
    everything = range(len(hierarchy.classes))
    return [f"{_size(everything, images)} ({order})", *_lines(_nodes(hierarchy, images, max_members))]


def class_counts(hierarchy: Hierarchy, counts: Mapping[Name, int]) -> list[int]:
    """Return the count of each class, in the hierarchy's order.

    Raises:
        DataError: a class has no count.
    """
    missing = [name for name in hierarchy.classes if name not in counts]
    if missing:
        some = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise DataError(
            f"{len(missing)} of {len(hierarchy.classes)} classes have no count: {some}. Count each class, with 0 where there is none."
        )
    return [counts[name] for name in hierarchy.classes]


def group_title(level: Level, group: int) -> str:
    """Return what a group is called for readers: its name on one line, with the level before it where the name is a number."""
    name = level.groups[group]
    return f"{level.name} {name}" if isinstance(name, int) else _one_line(name)


def class_title(name: Name) -> str:
    """Return what a class is called for readers, on one line."""
    return _one_line(name)


def counted(n: int, one: str, many: str) -> str:
    """Return a number with its noun: `1 class`, `2 classes`."""
    return f"{n:,} {one if n == 1 else many}"


@dataclass(frozen=True)
class _Node:
    text: str
    children: Sequence["_Node"] = ()


def _nodes(hierarchy: Hierarchy, images: Sequence[int] | None, max_members: int) -> list[_Node]:
    """Return the groups of the coarsest level with all that hangs below them."""
    nodes = [
        _Node(class_title(name) + ("" if images is None else f": {counted(images[number], 'image', 'images')}"))
        for number, name in enumerate(hierarchy.classes)
    ]
    for level, code in zip(hierarchy.levels, hierarchy.codes.tolist(), strict=True):
        children: list[list[_Node]] = [[] for _ in level.groups]
        for node, parent in zip(nodes, level.parent, strict=True):
            children[parent].append(node)
        classes: list[list[int]] = [[] for _ in level.groups]
        for number, group in enumerate(code):
            classes[group].append(number)
        if level is hierarchy.levels[0]:
            children = [_first(found, max_members) for found in children]
        nodes = [
            _Node(f"{group_title(level, group)}: {_size(classes[group], images)}", children[group])
            for group in range(len(level.groups))
        ]
    return nodes


def _first(classes: list[_Node], n: int) -> list[_Node]:
    n_more = len(classes) - n
    if not n:
        return []
    return classes if n_more <= 0 else [*classes[:n], _Node(f"… {counted(n_more, 'more class', 'more classes')}")]


def _lines(nodes: Sequence[_Node], indent: str = "") -> Iterator[str]:
    for number, node in enumerate(nodes, start=1):
        is_last = number == len(nodes)
        yield f"{indent}{'└── ' if is_last else '├── '}{node.text}"
        yield from _lines(node.children, indent + ("    " if is_last else "│   "))


def _size(classes: Sequence[int], images: Sequence[int] | None) -> str:
    text = counted(len(classes), "class", "classes")
    return text if images is None else f"{text}, {counted(sum(images[number] for number in classes), 'image', 'images')}"


def _one_line(name: Name) -> str:
    return " ".join(str(name).split())
