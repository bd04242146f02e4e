"""What commands share: options, reading, writing, printing, progress, running experiments."""
