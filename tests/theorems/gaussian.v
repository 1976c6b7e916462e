(** The law of discrete Gaussian noise (docs/proofs/samplers.md, section 6). *)
Require Import Reals Lra Lia List ZArith Arith.
From XgbDp Require Import finite programs samplers laplace.
Open Scope R_scope.

(** A draw from some integers: what [DiscreteLaplace] is, by [laplace_distribution], given that its check has
    let the number through. *)
Definition draw (xs : list Z) (weight : Z -> R) : M law Z :=
  fun f => sum xs (fun x => weight x / sum xs weight * f x).

Definition gaussian_weight (sigma2 : nat) (x : Z) : R := exp (- (IZR x * IZR x / (2 * INR sigma2))).

Definition denominator (t sigma2 : nat) : nat := (2 * sigma2 * t * t)%nat.

(** The probability by which the proposal y is taken. *)
Definition taken (t sigma2 : nat) (y : Z) : R :=
  exp (- (INR (distance y t sigma2 * distance y t sigma2) / INR (denominator t sigma2))).

Lemma abs_nat_IZR (x : Z) : INR (Z.abs_nat x) = Rabs (IZR x).
Proof. rewrite INR_IZR_INZ, Zabs2Nat.id_abs. apply abs_IZR. Qed.

Lemma square_abs (x : R) : Rabs x * Rabs x = x * x.
Proof. exact (eq_sym (Rsqr_abs x)). Qed.

Lemma proposal_and_acceptance (t sigma2 : nat) (y : Z) :
  (0 < t)%nat -> (0 < sigma2)%nat ->
  ratio t ^ Z.abs_nat y * taken t sigma2 y
    = exp (- (INR sigma2 / (2 * INR t * INR t))) * gaussian_weight sigma2 y.
Proof.
  intros Ht Hs. apply lt_0_INR in Ht, Hs. unfold ratio, taken, gaussian_weight, denominator.
  rewrite <- exp_pow, <- !exp_plus. f_equal.
  rewrite !mult_INR. unfold distance. rewrite !abs_nat_IZR, square_abs.
  rewrite minus_IZR, mult_IZR, abs_IZR, <- !INR_IZR_INZ, <- (square_abs (IZR y)).
  replace (INR 2) with 2 by (simpl; ring). field. lra.
Qed.

Lemma sum_is (xs : list Z) (g : Z -> R) (x : Z) :
  NoDup xs -> In x xs -> sum xs (fun y => g y * is x y) = g x.
Proof.
  induction 1 as [|y xs Hy Hn IH]; intros Hx; [destruct Hx|]. cbn [sum]. unfold is at 1.
  destruct (Z.eqb_spec y x) as [->|E].
  - assert (forall zs, ~ In x zs -> sum zs (fun y => g y * is x y) = 0) as H0.
    { induction zs as [|z zs IHz]; intros H; [reflexivity|]. cbn [sum]. unfold is at 1.
      destruct (Z.eqb_spec z x) as [->|F]; [exfalso; apply H; left; reflexivity|].
      rewrite IHz by (intros G; apply H; right; exact G). ring. }
    rewrite H0 by exact Hy. ring.
  - destruct Hx as [F|Hx]; [congruence|]. rewrite IH by exact Hx. ring.
Qed.

(** [DiscreteGaussian], whatever its scale t of the proposals is: x has a probability in proportion
    to exp (- x^2 / (2 sigma2)) among all numbers xs that the checks let through. *)
Theorem gaussian_distribution (xs : list Z) (t sigma2 : nat) (x : Z) :
  (0 < t)%nat -> (0 < sigma2)%nat -> NoDup xs -> In x xs ->
  Un_cv (fun fuel => gaussian law coin_distribution fuel (draw xs (fun y => ratio t ^ Z.abs_nat y)) t sigma2 (is x))
    (gaussian_weight sigma2 x / sum xs (gaussian_weight sigma2)).
Proof.
  intros Ht Hs Hn Hx. set (w := fun y => ratio t ^ Z.abs_nat y). set (k := taken t sigma2).
  set (c := exp (- (INR sigma2 / (2 * INR t * INR t)))). set (g := gaussian_weight sigma2).
  assert (forall y, w y * k y = c * g y) as Hwk by (intros y; apply proposal_and_acceptance; assumption).
  assert (0 < c) as Hc by apply exp_pos.
  assert (xs <> nil) as Hxs by (intros E; rewrite E in Hx; destruct Hx).
  destruct (ratio_bounds t Ht) as [Hr _].
  assert (0 < sum xs w) as HW by (apply sum_pos; [exact Hxs | intros; apply pow_lt, Hr]).
  assert (0 < sum xs g) as HG by (apply sum_pos; [exact Hxs | intros; apply exp_pos]).
  assert (forall y, k y <= 1) as Hk.
  { intros y. unfold k, taken. rewrite <- exp_0. apply lt_0_INR in Ht, Hs.
    assert (0 <= INR (distance y t sigma2 * distance y t sigma2) / INR (denominator t sigma2)) as [H|H].
    { apply Rmult_le_pos; [apply pos_INR|]. left. apply Rinv_0_lt_compat. unfold denominator.
      rewrite !mult_INR. replace (INR 2) with 2 by (simpl; ring).
      repeat apply Rmult_lt_0_compat; lra. }
    - left. apply exp_increasing. lra.
    - rewrite <- H, Ropp_0. lra. }
  assert (c * sum xs g <= sum xs w) as Hle.
  { rewrite <- sum_scale. apply sum_le. intros y _. rewrite <- Hwk.
    rewrite <- (Rmult_1_r (w y)) at 2. apply Rmult_le_compat_l; [left; apply pow_lt, Hr | apply Hk]. }
  set (rho := 1 - c * sum xs g / sum xs w).
  assert (1 - rho = c * sum xs g / sum xs w) as Erho by (unfold rho; ring).
  replace (g x / sum xs g) with (c * g x / sum xs w / (1 - rho))
    by (rewrite Erho; field; repeat split; apply Rgt_not_eq; assumption).
  assert (0 < c * sum xs g / sum xs w) as Hp
    by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; assumption).
  assert (c * sum xs g / sum xs w <= 1) as Hq
    by (apply Rmult_le_reg_r with (sum xs w); [exact HW|]; unfold Rdiv;
        rewrite Rmult_assoc, Rinv_l; lra).
  apply rejection; [unfold rho; lra | reflexivity |].
  intros fuel. cbn -[INR Nat.mul Nat.div Nat.modulo bernoulli_exp is].
  set (L := gaussian law coin_distribution fuel (draw xs w) t sigma2 (is x)).
  unfold draw at 1.
  rewrite (sum_eq xs _ (fun y => (c / sum xs w * g y) * is x y
      + (w y / sum xs w * L + - (c / sum xs w * L) * g y))).
  - rewrite !sum_plus, sum_is, sum_scale by assumption.
    rewrite (sum_eq xs (fun y => w y / sum xs w * L) (fun y => L / sum xs w * w y))
      by (intros; field; lra).
    rewrite sum_scale. unfold rho. field. lra.
  - intros y _. fold (denominator t sigma2).
    rewrite coin_of_quotient.
    + fold (taken t sigma2 y). fold (k y).
      replace (c / sum xs w * g y) with (w y * k y / sum xs w) by (rewrite Hwk; field; lra).
      replace (- (c / sum xs w * L) * g y) with (- (w y * k y / sum xs w * L))
        by (rewrite Hwk; field; lra).
      fold L. field. lra.
    + unfold denominator. nia.
Qed.
