"""From any image source to a model's input."""
