"""The model: image → trunk → pooling → head → embedding."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Literal, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.images.preprocessing import Preprocessing
from kinfold.models import fingerprint as fingerprints
from kinfold.models import trunks, weights
from kinfold.models.cut import cut
from kinfold.models.heads import LinearHead
from kinfold.models.image_batches import Images, image_batches
from kinfold.models.pooling import POOLS
from kinfold.modes import evaluating
from kinfold.records import ParamGroup
from kinfold.seeding import seeded

PRECISIONS = ("32-true", "bf16-mixed")
TRUNK = "trunk"


class Embedder(nn.Module):
    """Turns images into embeddings that are alike where their classes are.

    `embedder(images)` gives `(feature, embedding)` of a preprocessed batch, for training; `embedder.embed(images)` takes images
    as they come. Embeddings are as the head gives them: similarities normalise, the model does not.

    Args:
        trunk: `convnet`, a name of timm, any module that gives maps (n, f, h, w) or vectors (n, f), or what `trunk(…)` made.
        dim: size of the embedding; `None` leaves the head out, so that the pooled feature is the embedding.
        pool: `avg`, `max`, `avg+max`, `gem`, or `trunk` for the network's own. Where a trunk gives vectors (vision transformers),
            there is nothing to pool: `avg` and `trunk` are the same, the others are refused.
        size: side of the images, in pixels; `None` is the trunk's own.
        pretrained: start from the published weights of a timm network.
        layer_norm: normalise features (without learned scale and shift) before the head.
        seed: decides all weights that are not pretrained; the caller's random state is neither used nor changed.

    Attributes:
        trunk: see `kinfold.models.trunks.Trunk`.
        preprocessing: turns one image, whatever its source, into the trunk's input; saved with the model, may be replaced.
        classes: names of the training classes in the order of their numbers, strings or whole numbers; `None` if not known.
        frozen: what does not train: `trunk`, the name of the last block that does not, or `None`; see `freeze`.

    Raises:
        ConfigError: a setting is unknown, out of range, or contradicts another.
        MissingExtraError: the pretrained weights need an extra.

    Example:
        >>> import numpy as np
        >>> embedder = Embedder("convnet", dim=64, size=32)
        >>> embedder.embed([np.zeros((40, 60, 3), np.uint8), np.ones((50, 50), np.uint8)]).shape
        torch.Size([2, 64])
    """

    def __init__(  # noqa: PLR0913  # what every user sets, each a plain value
        self,
        trunk: str | nn.Module,
        dim: int | None = 128,
        *,
        pool: str = "avg",
        size: int | None = None,
        pretrained: bool = True,
        layer_norm: bool = False,
        seed: int = 0,
    ):
        super().__init__()
        self._frozen: tuple[nn.Module, ...] = ()
        _check_settings(dim, pool, layer_norm)
        with seeded(seed):
            self.trunk = trunks.trunk(trunk, pretrained=pretrained, size=size, pooled=pool == "trunk")
            _check_pool_fits(pool, self.trunk)
            self.pool = POOLS[pool]() if self.trunk.gives_map else nn.Identity()
            self.head = nn.Identity() if dim is None else LinearHead(self.trunk.n_features, dim, layer_norm=layer_norm)
        self.dim = self.trunk.n_features if dim is None else dim
        self.preprocessing: Preprocessing = self.trunk.preprocessing
        self.classes: list[str] | list[int] | None = None
        self.frozen: str | None = None
        self._settings = {"pool": pool, "dim": dim, "layer_norm": layer_norm}

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> tuple[Float[Tensor, "n f"], Float[Tensor, "n d"]]:
        """Return the pooled feature and the embedding of preprocessed images."""
        feature = self.pool(self.trunk(images))
        return feature, self.head(feature)

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the groups `trunk` and `head` (the head's parameters and those of the pooling); an empty group is left out."""
        groups = {"trunk": [self.trunk], "head": [self.pool, self.head]}
        params = {name: [p for part in parts for p in part.parameters()] for name, parts in groups.items()}
        return [ParamGroup(name, own) for name, own in params.items() if own]

    def freeze(self, part: str | None = TRUNK) -> Self:
        """Keep a part of the trunk as it is in training: its weights, and its batch statistics; dropout in it is off.

        Args:
            part: `trunk` for all of it, the dotted name of a block of it (that block and everything before stay), such as
                `blocks.4` or `layer3`, or `None`: everything trains.

        Returns:
            The model itself. What is frozen is a matter of training: it is not saved with the model.

        Raises:
            ConfigError: there is no such block, or the trunk cannot be cut there.
        """
        front = [] if part is None else [self.trunk if part == TRUNK else cut(self.trunk.module, part)[0]]
        self.trunk.requires_grad_(True)
        self.frozen = part
        self._frozen = tuple(front)  # in a tuple: its modules are those of the trunk, and registered there
        for module in front:
            module.requires_grad_(False)
        return self.train(self.training)

    def frozen_names(self) -> set[str]:
        """Return the names, in the state dict, of the tensors that training does not touch."""
        held = {id(tensor) for front in self._frozen for tensor in front.state_dict(keep_vars=True).values()}
        return {name for name, tensor in self.state_dict(keep_vars=True).items() if id(tensor) in held}

    def train(self, mode: bool = True) -> Self:
        """Switch between training and evaluation mode; a frozen part stays in evaluation mode."""
        super().train(mode)
        for front in self._frozen:
            front.eval()
        return self

    @torch.no_grad()
    def embed(
        self,
        images: Images,
        *,
        batch_size: int = 64,
        device: str | torch.device | None = None,
        precision: Literal["32-true", "bf16-mixed"] = "32-true",
        progress: Callable[[int], object] | None = None,
    ) -> Float[Tensor, "n d"]:
        """Embed images in their order; modes, device and gradients of the model are afterwards as they were.

        Args:
            images: one image or several (paths, bytes, open files, Pillow images, numpy arrays), or a preprocessed tensor (n, 3, h, w).
            batch_size: images at a time. Rows differ between batch sizes by rounding only (1e-5 of the largest value in float32).
            device: where to compute; `None` is where the model is.
            precision: `32-true`, or `bf16-mixed`, which is faster where the processor has it and keeps about two decimal digits.
            progress: called after each batch with the number of images done.

        Returns:
            float32 on the CPU, one row per image, (0, dim) for none.

        Raises:
            DataError: an image is missing, broken or no image; the message names it and its position.
            ShapeError: a tensor or an array does not have the shape of images.
            ConfigError: the batch size is below 1, or the precision is unknown.
        """
        if precision not in PRECISIONS:
            raise ConfigError(f"`precision` is {precision!r}: {did_you_mean(str(precision), PRECISIONS)}")
        home = next(self.parameters(), torch.zeros(())).device
        place = home if device is None else torch.device(device)
        rows = [torch.empty(0, self.dim)]
        n_done = 0
        try:
            self.to(place)
            with evaluating(self), torch.autocast(place.type, dtype=torch.bfloat16, enabled=precision == "bf16-mixed"):
                for batch in image_batches(images, self.preprocessing, batch_size=batch_size):
                    rows.append(self(self._as_input(batch, place))[1].float().cpu())
                    n_done += len(batch)
                    if progress:
                        progress(n_done)
        finally:
            self.to(home)
        return torch.cat(rows)

    def fingerprint(self) -> str:
        """Return 64 hexadecimal digits that are equal exactly for equal weights, architecture and preprocessing."""
        return fingerprints.fingerprint(self.state_dict(), self.describe())

    def describe(self) -> dict[str, object]:
        """Return architecture and preprocessing in plain values: everything but the weights."""
        return {"trunk": self.trunk.name, **self._settings, "preprocessing": self.preprocessing.to_dict()}

    def save_pretrained(self, folder: str | PathLike[str], *, card: Mapping[str, object] | None = None) -> None:
        """Write the model into a folder: weights (safetensors), configuration, class names and a model card.

        A model that is there already is replaced; if writing fails, it stays. Other files are left alone.

        Args:
            folder: made if it is missing.
            card: what the model card says besides: `data`, `licence`, `notes` (text) and `scores` (metric → number).

        Raises:
            ConfigError: the card has other entries, or the tensors mix floating-point types.
            DataError: `classes` is neither names nor whole numbers, each once; or the folder's path is a file.
        """
        saved = weights.SavedModel(config=self._config(), tensors=self.state_dict(), classes=self.classes)
        weights.write(saved, folder, card=card or {})

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str], *, trunk: nn.Module | None = None) -> Self:
        """Read a model that `save_pretrained` wrote, in evaluation mode; nothing is downloaded and nothing is executed.

        Args:
            folder: the folder.
            trunk: only for a model around your own module: such a module, whose weights are overwritten.

        Raises:
            DataError: a file is missing, broken, changed since it was saved, or of a newer version.
            ConfigError: the configuration names an unknown key or trunk, or `trunk` is missing or not wanted.
        """
        saved = weights.read(folder)
        embedder = cls._from_config(saved.config, trunk)
        weights.fill(embedder, saved, folder)
        embedder.classes = saved.classes
        if embedder.fingerprint() != saved.config.fingerprint:
            raise DataError(
                f"model folder {str(folder)!r}: weights or settings are not those that were saved (the fingerprint differs). "
                "Copy the folder again, or train anew."
            )
        return embedder.eval()

    @classmethod
    def _from_config(cls, config: "weights.SavedConfig", module: nn.Module | None) -> Self:
        name = config.trunk.name
        if config.trunk.is_custom and module is None:
            raise ConfigError(f"this model was made around your own module: give one, from_pretrained(folder, trunk={name}(…)).")
        if module is not None and not config.trunk.is_custom:
            raise ConfigError(f"this model's trunk `{name}` is made by its name: leave `trunk=` out.")
        preprocessing = Preprocessing.from_dict(config.preprocessing)
        with seeded(0):
            made = trunks.trunk(
                name if module is None else module,
                pretrained=False,
                size=config.trunk.size,
                pooled=config.pool == "trunk",
                n_features=config.trunk.n_features,
            )
        if module is not None:
            made.name = name
        embedder = cls(made, config.dim, pool=config.pool, layer_norm=config.layer_norm)
        embedder.preprocessing = preprocessing
        return embedder

    def _config(self) -> "weights.SavedConfig":
        made = self.trunk
        trunk = {"name": made.name, "is_custom": made.is_custom, "size": made.preprocessing.size, "n_features": made.n_features}
        return weights.SavedConfig(
            trunk=weights.SavedTrunk(**trunk),
            **self._settings,
            preprocessing=self.preprocessing.to_dict(),
            fingerprint=self.fingerprint(),
        )

    def _as_input(self, batch: Tensor, device: torch.device) -> Tensor:
        weight = next(self.parameters(), batch)
        return batch.to(device=device, dtype=weight.dtype)


def _check_settings(dim: int | None, pool: str, layer_norm: bool) -> None:
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int) or dim < 1):
        raise ConfigError(f"`dim` is {dim!r}: it must be a whole number above 0, or None for the pooled feature itself.")
    if dim is None and layer_norm:
        raise ConfigError("`layer_norm` normalises the input of the head, but dim=None leaves the head out: drop one of them.")
    if pool not in (*POOLS, "trunk"):
        raise ConfigError(f"`pool` is {pool!r}: {did_you_mean(str(pool), [*POOLS, 'trunk'])}")


def _check_pool_fits(pool: str, made: "trunks.Trunk") -> None:
    if made.gives_map and pool == "trunk":
        raise ConfigError(
            f"trunk `{made.name}` gives feature maps: choose `avg`, `max`, `avg+max` or `gem` (or, for a name of timm, make it with pooled=True)."
        )
    if not made.gives_map and pool not in ("avg", "trunk"):
        raise ConfigError(f"trunk `{made.name}` gives one vector per image, so `{pool}` has nothing to pool: choose `trunk`.")
