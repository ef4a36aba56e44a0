"""`kinfold hierarchy compare`: two groupings of classes → how well their levels agree."""

from kinfold.commands.agreement import print_agreement
from kinfold.commands.groupings import read_groupings
from kinfold.commands.output import print_json
from kinfold.errors import DataError
from kinfold.evaluation.agreement import agreements


def compare_hierarchies_command(one: str, other: str, *, permutations: int, seed: int, as_json: bool) -> None:
    """Print AMI, NMI and p of each pair of levels, over the classes that both have."""
    first, second = read_groupings(one), read_groupings(other)
    known = set(second.classes)
    shared = [name for name in first.classes if name in known]
    if not shared:
        raise DataError(
            f"{one} and {other} share no class: the first has {first.classes[0]!r}, …, the second {second.classes[0]!r}, …. "
            "Classes are matched by name."
        )
    rows = agreements(first.columns(shared), second.columns(shared), permutations=permutations, seed=seed)
    left_out = {one: len(first.classes) - len(shared), other: len(second.classes) - len(shared)}
    if as_json:
        plain = [row.to_dict() for row in rows]
        print_json({"one": one, "other": other, "n_classes": len(shared), "left_out": list(left_out.values()), "levels": plain})
        return
    print_agreement(rows, title=f"{one} ({first.kind}) with {other} ({second.kind})")
    for name, n in left_out.items():
        if n:
            print(f"left out: {n:,} {'class' if n == 1 else 'classes'} that only {name} has")
