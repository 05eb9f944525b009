"""What to do with answers: what to ask next, and what each finding contributes."""
