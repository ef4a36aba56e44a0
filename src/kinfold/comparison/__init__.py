"""What makes two measured runs comparable, and how far apart they are."""
