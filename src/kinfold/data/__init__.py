"""From files to batches: tables, splits, samplers, augmentation, loaders."""
