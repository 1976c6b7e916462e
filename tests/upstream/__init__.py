"""XGBoost itself: the patches, and that everything else stays the stock wheel's."""
