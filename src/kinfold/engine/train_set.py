"""The training set for one start of an epoch: embedded at most once per view."""

from kinfold.records import Embedded, TrainSet


class EpochTrainSet:
    """Remembers what the training set's images were embedded to, for as long as the model stays as it is.

    Args:
        train_set: embeds anew at every call.
    """

    def __init__(self, train_set: TrainSet):
        self._train_set = train_set
        self._embedded: dict[int, Embedded] = {}

    @property
    def n_classes(self) -> int:
        """Number of training classes."""
        return self._train_set.n_classes

    def embed(self, view: int = 0) -> Embedded:
        """Embed the whole training set in table order, or return what was embedded before."""
        if view not in self._embedded:
            self._embedded[view] = self._train_set.embed(view)
        return self._embedded[view]
