(** What `make prove` has checked: each theorem, and the axioms on which it rests. *)
From XgbDp Require Import choice bounded_range samplers select laplace gaussian.

Check envelope. Print Assumptions envelope.
Check selection_has_its_range. Print Assumptions selection_has_its_range.
Check composition. Print Assumptions composition.
Check uniform_below_law. Print Assumptions uniform_below_law.
Check bernoulli_exp_frac_law. Print Assumptions bernoulli_exp_frac_law.
Check bernoulli_exp_law. Print Assumptions bernoulli_exp_law.
Check select_law. Print Assumptions select_law.
Check laplace_law. Print Assumptions laplace_law.
Check gaussian_law. Print Assumptions gaussian_law.
