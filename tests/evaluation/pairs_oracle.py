"""Verification as plain loops over lists, independent of the library."""


def kinds(sim, label, item=None, is_query=None, is_gallery=None):
    """Return the similarities of the positive and of the negative pairs: each unordered pair of different items once."""
    n = len(label)
    item = list(range(n)) if item is None else item
    asks = [True] * n if is_query is None else is_query
    answers = [True] * n if is_gallery is None else is_gallery
    positive, negative = [], []
    for i in range(n):
        for j in range(i + 1, n):
            meets = (asks[i] and answers[j]) or (asks[j] and answers[i])
            if item[i] != item[j] and meets:
                (positive if label[i] == label[j] else negative).append(sim[i][j])
    return positive, negative


def curve(positive, negative):
    """Return (threshold, true accepts, false accepts) for each distinct positive similarity, from the largest down."""
    return [(t, sum(s >= t for s in positive), sum(s >= t for s in negative)) for t in sorted(set(positive), reverse=True)]


def auc(positive, negative):
    won = sum((p > n) + (p == n) / 2 for p in positive for n in negative)
    return won / (len(positive) * len(negative))


def at_far(positive, negative, far):
    """Return the largest TAR with FAR <= far over every threshold there is, accepting nothing included."""
    best = 0.0
    for t in sorted(set(positive + negative)):
        if sum(s >= t for s in negative) / len(negative) <= far:
            best = max(best, sum(s >= t for s in positive) / len(positive))
    return best


def eer(positive, negative):
    """Walk down all similarities; where FAR overtakes 1 - TAR, go along the line between the two points."""
    far, miss = 0.0, 1.0
    for t in sorted(set(positive + negative), reverse=True):
        new_far = sum(s >= t for s in negative) / len(negative)
        new_miss = 1 - sum(s >= t for s in positive) / len(positive)
        if new_far >= new_miss:
            share = (miss - far) / ((miss - far) + (new_far - new_miss))
            return far + share * (new_far - far)
        far, miss = new_far, new_miss
    raise AssertionError("the last threshold accepts everything")
