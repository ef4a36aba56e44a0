"""The fingerprint of a model: equal exactly when weights, architecture and preprocessing are equal."""

import json
from collections.abc import Mapping
from hashlib import sha256

import torch
from torch import Tensor


def fingerprint(tensors: Mapping[str, Tensor], description: Mapping[str, object]) -> str:
    """Return the SHA-256 of named tensors and a description, whatever device or memory layout the tensors have.

    Args:
        tensors: a state dict; the order of its names does not matter.
        description: what else decides the embedding, as JSON values.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> fingerprint({"w": torch.zeros(2)}, {"dim": 2})[:8]
        '2f1d624d'
    """
    digest = sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu()
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
