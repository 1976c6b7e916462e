"""Adding one row moves no released quantity by more than its stated sensitivity or range.

Hypothesis draws small data sets full of awkward values and one more row. Everything is compared in
exact integers: on the functions of the oracle (`tests/reference`), which
`test_oracle_is_the_trainer` ties to the C++ on the same kind of data, and on the C++ itself where
integers can be read off it: label sums, and the sums of leaves of trainings without noise. The
splits are held fixed, because sensitivities are stated for a fixed transcript of everything
released before.

`test_attained` shows that the stated figures are attained: the checks would fail if these were
smaller.
"""
