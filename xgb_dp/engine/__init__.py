"""The private build of libxgboost: loading, saved models, communication, and fixed test noise.

This package imports only the errors of xgb_dp.
"""
