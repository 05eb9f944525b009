"""Other implementations of the same inference, to measure sbnet against."""
