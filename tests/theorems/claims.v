(** What `make prove` has checked: each theorem, and the axioms on which it rests. *)
From XgbDp Require Import choice bounded_range samplers select laplace gaussian.

Check envelope. Print Assumptions envelope.
Check selection_has_its_range. Print Assumptions selection_has_its_range.
Check composition. Print Assumptions composition.
Check uniform_below_distribution. Print Assumptions uniform_below_distribution.
Check bernoulli_exp_frac_distribution. Print Assumptions bernoulli_exp_frac_distribution.
Check bernoulli_exp_distribution. Print Assumptions bernoulli_exp_distribution.
Check select_distribution. Print Assumptions select_distribution.
Check laplace_distribution. Print Assumptions laplace_distribution.
Check gaussian_distribution. Print Assumptions gaussian_distribution.
