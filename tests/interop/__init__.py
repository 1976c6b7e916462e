"""Private models in other languages' XGBoost."""
