"""The command line ``xgb-dp``, or ``python -m xgb_dp``. Requires the extra ``cli``."""
