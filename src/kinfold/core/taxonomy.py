"""A taxonomy, given as child → parent or as paths from a root → the hierarchy of its classes."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kinfold.core.hierarchy import Hierarchy, Name, hierarchy_from_groups
from kinfold.errors import DataError

_Path = tuple[Name, ...]


def hierarchy_from_parents(parent: Mapping[Name, Name | None], *, classes: Sequence[Name] | None = None) -> Hierarchy:
    """Return the hierarchy of a taxonomy whose nodes name their parents.

    Level `depth_k` groups the classes by their ancestor k steps below the root; larger k is finer. A class that ends above depth k
    is a group of its own there. Left out are levels that group nothing anew: of one group, or with the same groups as the next finer
    level (as the classes, on the finest). Depths keep their number, so a subset of the classes has the same levels, or fewer.
    With several roots, `depth_0` groups by root.

    Args:
        parent: child → parent; a root has none: no entry, `None`, or blank text.
        classes: which nodes are classes, in this order; inner nodes too, but none above another. `None`: all leaves, in the order in
            which they are first named.

    Raises:
        DataError: parents go round in a circle; a class is no node, comes twice, or lies above another class; no level is left.

    Example:
        >>> birds = {"wren": "song", "robin": "song", "owl": "bird", "song": "bird", "cod": "fish", "bird": "animal", "fish": "animal"}
        >>> tree = hierarchy_from_parents(birds)
        >>> tree
        Hierarchy(4 classes; depth_2 3, depth_1 2)
        >>> tree.members("depth_2")
        {'song': ('wren', 'robin'), 'owl': ('owl',), 'cod': ('cod',)}
    """
    above = {child: None if _is_blank(node) else node for child, node in parent.items()}
    _check_acyclic(above)
    nodes = dict.fromkeys(node for pair in above.items() for node in pair if node is not None)
    if classes is None:
        inner = set(above.values())
        classes = [node for node in nodes if node not in inner]
    _check_known(classes, nodes, "node of the taxonomy")
    return _hierarchy({name: _ancestors(name, above) for name in classes})


def hierarchy_from_paths(paths: Mapping[Name, Sequence[Name]], *, classes: Sequence[Name] | None = None) -> Hierarchy:
    """Return the hierarchy of classes whose ancestors are known, such as hypernym paths of WordNet or nested folders.

    Levels as in `hierarchy_from_parents`. One name below two parents means two groups, which are then named by their whole paths
    (`animals/other`, `plants/other`).

    Args:
        paths: class → its ancestors from the root down, without the class; empty for a class that is a root.
        classes: which of them, in this order; `None`: all.

    Raises:
        DataError: a class is not among the paths, comes twice, or lies above another class; a path is text, or has a blank name; no
            level is left.

    Example:
        >>> tree = hierarchy_from_paths({"wren": ("animal", "bird"), "owl": ("animal", "bird"), "cod": ("animal", "fish")})
        >>> tree.members("depth_1")
        {'bird': ('wren', 'owl'), 'fish': ('cod',)}
    """
    if classes is None:
        classes = list(paths)
    _check_known(classes, paths, "class with a path")
    for name in classes:
        path = paths[name]
        if isinstance(path, str):
            raise DataError(f"the path of class {name!r} is the text {path!r}: give a sequence of names, as in path.split('/').")
        if any(_is_blank(node) for node in path):
            raise DataError(f"the path of class {name!r} has a blank name: {list(path)!r}. Fill it in or leave it out.")
    return _hierarchy({name: tuple(paths[name]) for name in classes})


def _hierarchy(ancestors: Mapping[Name, _Path]) -> Hierarchy:
    """Cut the tree at every depth, and keep the cuts that differ."""
    if not ancestors:
        raise DataError("the taxonomy has no class: give at least one.")
    whole = {name: (*path, name) for name, path in ancestors.items()}
    _check_none_above(whole)
    columns, n_below = dict[str, list[Name]](), len(whole)
    for depth in reversed(range(max(map(len, ancestors.values())))):
        groups = [path[: depth + 1] for path in whole.values()]
        if 1 < len(set(groups)) < n_below:  # cuts nest: as many groups are the same groups
            n_below = len(set(groups))
            columns[f"depth_{depth}"] = _named(groups)
    if not columns:
        raise DataError(
            f"the taxonomy of {len(whole)} classes has no level: no node is above several classes, but not above all. Give the classes "
            "parents that group some of them."
        )
    return hierarchy_from_groups(list(whole), columns)


def _named(groups: Sequence[_Path]) -> list[Name]:
    """Call each group by its own name, or by its whole path where another group has the same name."""
    n_of_name = Counter(path[-1] for path in set(groups))
    return [path[-1] if n_of_name[path[-1]] == 1 else "/".join(map(str, path)) for path in groups]


def _ancestors(name: Name, above: Mapping[Name, Name | None]) -> _Path:
    path, node = list[Name](), above.get(name)
    while node is not None:
        path.append(node)
        node = above.get(node)
    return tuple(reversed(path))


def _check_acyclic(above: Mapping[Name, Name | None]) -> None:
    is_fine = set[Name]()
    for start in above:
        trail, node = dict[Name, None](), start
        while node is not None and node not in is_fine:
            if node in trail:
                nodes = list(trail)
                circle = [*nodes[nodes.index(node) :], node]
                raise DataError(
                    f"the parents go round in a circle: {' → '.join(map(repr, circle))}. Correct one of them; a root has no parent."
                )
            trail[node] = None
            node = above.get(node)
        is_fine.update(trail)


def _check_known(classes: Sequence[Name], known: Mapping[Name, object], what: str) -> None:
    missing = [name for name in classes if name not in known]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise DataError(f"{len(missing)} of {len(classes)} classes are no {what}: {shown}. Add them, or leave them out.")
    n_of_name = Counter(classes)
    twice = [name for name in n_of_name if n_of_name[name] > 1]
    if twice:
        raise DataError(f"class {twice[0]!r} comes twice: name each class once.")


def _check_none_above(whole: Mapping[Name, _Path]) -> None:
    class_at = {path: name for name, path in whole.items()}
    for name, path in whole.items():
        for end in range(1, len(path)):
            if path[:end] in class_at:
                raise DataError(
                    f"class {class_at[path[:end]]!r} lies above class {name!r}: an image of one would belong to both. Keep one of them, "
                    "or give the images that are just the upper one a class of its own below it."
                )


def _is_blank(node: Name | None) -> bool:
    return node is None or (isinstance(node, str) and not node.strip())
