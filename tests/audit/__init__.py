"""Tests of the audits, and trainers broken on purpose for them."""
