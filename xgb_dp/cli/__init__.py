"""The command ``xgb-dp``, also ``python -m xgb_dp``. It needs the extra ``cli``."""
