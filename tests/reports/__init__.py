"""What a model says of its cost and of itself: reports, cards, importance, plots."""
