"""The papers' sums as plain Python loops on floats; nothing here is shared with kinfold."""

from math import exp, log


def _entries(mask):
    return [(i, j) for i, row in enumerate(mask) for j, here in enumerate(row) if here]


def _softplus(x):
    return x + log(1 + exp(-x)) if x > 0 else log(1 + exp(x))


def binomial_deviance(sim, positive, negative, margin, weight, *, alpha=2.0, threshold=0.5, cost=25.0):
    total = 0.0
    for mask, slope in ((positive, -alpha), (negative, alpha * cost)):
        terms = [weight[i][j] * _softplus(slope * (sim[i][j] - margin[i][j] - threshold)) for i, j in _entries(mask)]
        total += sum(terms) / len(terms) if terms else 0.0
    return total


def contrastive(
    sim,
    positive,
    negative,
    margin,
    weight,
    *,
    positive_threshold=1.0,
    negative_threshold=0.5,
    form="hinge",
    average="pairs",
):
    total = 0.0
    for mask, is_positive in ((positive, True), (negative, False)):
        weighted, n_active = 0.0, 0
        for i, j in _entries(mask):
            s = sim[i][j] - margin[i][j]
            distance = positive_threshold - s if is_positive else s - negative_threshold
            term = 0.0
            if distance > 0:
                term = distance * distance if form == "squared" else s if form == "jump" and not is_positive else distance
            n_active += term > 0
            weighted += weight[i][j] * term
        divisor = {"pairs": len(_entries(mask)), "active": n_active, "anchors": len(sim)}[average]
        total += weighted / divisor if divisor else 0.0
    return total


def triplets_of(sim, positive, negative, margin, picks, width=0.1):
    """The triplets of one way to pick, for `triplet` and for the tests of mining."""
    n, m = len(sim), len(sim[0]) if sim else 0
    s = [[sim[i][j] - margin[i][j] for j in range(m)] for i in range(n)]
    found = []
    for a in range(n):
        near = [j for j in range(m) if positive[a][j]]
        far = [j for j in range(m) if negative[a][j]]
        if not near or not far:
            continue
        if picks == "batch_hard":
            found.append((a, min(near, key=lambda j: s[a][j]), max(far, key=lambda j: s[a][j])))
            continue
        for p in near:
            below = [k for k in far if s[a][k] < s[a][p]]
            if picks == "all_triplets":
                chosen = far
            elif picks == "semi_hard":
                chosen = [k for k in below if s[a][k] > s[a][p] - width]
            else:
                chosen = [max(below, key=lambda k: s[a][k]) if below else min(far, key=lambda k: s[a][k])]
            found += [(a, p, k) for k in chosen]
    return found


def triplet(
    sim, positive, negative, margin, weight, *, gap=0.1, picks="all_triplets", width=0.1, form="hinge", average="triplets"
):
    total, n_active = 0.0, 0
    found = triplets_of(sim, positive, negative, margin, picks, width)
    for a, p, k in found:
        violation = (sim[a][k] - margin[a][k]) - (sim[a][p] - margin[a][p]) + gap
        term = _softplus(violation) if form == "soft" else max(0.0, violation)
        n_active += term > 0
        total += weight[a][p] * weight[a][k] * term
    divisor = n_active if average == "active" else len(found)
    return total / divisor if divisor else 0.0


def lifted_structure(sim, positive, negative, margin, weight, *, gap=1.0, per="anchor"):
    n, m = len(sim), len(sim[0]) if sim else 0

    def s(i, j):
        return sim[i][j] - margin[i][j]

    total = 0.0
    if per == "anchor":
        for i in range(n):
            near = sum(weight[i][j] * exp(gap - s(i, j)) for j in range(m) if positive[i][j])
            far = sum(weight[i][j] * exp(s(i, j)) for j in range(m) if negative[i][j])
            if near > 0 and far > 0:
                total += max(0.0, log(near) + log(far))
        return total / n if n else 0.0
    pairs = _entries(positive)
    for i, j in pairs:
        far = sum(weight[i][k] * exp(gap + s(i, k)) for k in range(m) if negative[i][k])
        far += sum(weight[k][j] * exp(gap + s(k, j)) for k in range(n) if negative[k][j])
        if far > 0:
            total += weight[i][j] * max(0.0, log(far) - s(i, j)) ** 2 / 2
    return total / len(pairs) if pairs else 0.0


def multi_similarity(sim, positive, negative, margin, weight, *, alpha=2.0, beta=50.0, threshold=0.5):
    total = 0.0
    for i in range(len(sim)):
        near = far = 0.0
        for j in range(len(sim[i])):
            s = sim[i][j] - margin[i][j] - threshold
            near += weight[i][j] * exp(-alpha * s) if positive[i][j] else 0.0
            far += weight[i][j] * exp(beta * s) if negative[i][j] else 0.0
        total += log(1 + near) / alpha + log(1 + far) / beta
    return total / len(sim) if sim else 0.0


def proxy_anchor(sim, positive, negative, margin, weight, *, scale=32.0, delta=0.1):
    pull = push = n_with_positive = 0.0
    n, m = len(sim), len(sim[0]) if sim else 0
    for p in range(m):
        near = far = 0.0
        for i in range(n):
            s = sim[i][p] - margin[i][p]
            near += weight[i][p] * exp(-scale * (s - delta)) if positive[i][p] else 0.0
            far += weight[i][p] * exp(scale * (s + delta)) if negative[i][p] else 0.0
        n_with_positive += any(positive[i][p] for i in range(n))
        pull += log(1 + near)
        push += log(1 + far)
    return (pull / n_with_positive if n_with_positive else 0.0) + (push / m if m else 0.0)


def proxy_nca(sim, positive, negative, margin, weight, *, scale=24.0, positive_in_denominator=True):
    total, pairs = 0.0, _entries(positive)
    for i, j in pairs:
        near = exp(scale * (sim[i][j] - margin[i][j]))
        far = sum(weight[i][k] * exp(scale * (sim[i][k] - margin[i][k])) for k in range(len(sim[i])) if negative[i][k])
        if far > 0:
            total -= weight[i][j] * log(near / (near + far if positive_in_denominator else far))
    return total / len(pairs) if pairs else 0.0


def normalized_softmax(sim, positive, negative, margin, weight, *, scale=20.0):
    total, pairs = 0.0, _entries(positive)
    for i, j in pairs:
        near = exp(scale * (sim[i][j] - margin[i][j]))
        denominator = near
        for k in range(len(sim[i])):
            if negative[i][k]:
                denominator += weight[i][k] * exp(scale * (sim[i][k] - margin[i][k]))
        total += weight[i][j] * -log(near / denominator)
    return total / len(pairs) if pairs else 0.0


def hierarchical_proxies(embedding, label, levels, parents, level_weights, loss):
    """HPL, eq. 6: the same loss on each level, labels walked up by the parents."""
    total = 0.0
    for depth, proxies in enumerate(levels):
        if depth:
            label = [parents[depth - 1][y] for y in label]
        sim = [[_cosine(x, p) for p in proxies] for x in embedding]
        own = [[y == j for j in range(len(proxies))] for y in label]
        other = [[not entry for entry in row] for row in own]
        margin, weight = ([[value] * len(proxies) for _ in label] for value in (0.0, 1.0))
        total += level_weights[depth] * loss(sim, own, other, margin, weight)
    return total


def _cosine(x, y):
    product = sum(a * b for a, b in zip(x, y, strict=True))
    return product / (sum(a * a for a in x) * sum(b * b for b in y)) ** 0.5


def refreshed(below, parent, proxies):
    """HPL's refresh of one level: the nearest proxy for each lower one, then the mean of the members."""
    parent = [
        min(range(len(proxies)), key=lambda j, x=x: sum((a - b) ** 2 for a, b in zip(x, proxies[j], strict=True))) for x in below
    ]
    moved = []
    for j, old in enumerate(proxies):
        members = [x for x, p in zip(below, parent, strict=True) if p == j]
        moved.append([sum(column) / len(members) for column in zip(*members, strict=True)] if members else old)
    return parent, moved
