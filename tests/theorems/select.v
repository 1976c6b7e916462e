(** The law of the exponential mechanism's sampler (docs/proofs/exponential-mechanism.md). *)
Require Import Reals Lra Lia List ZArith Arith.
From XgbDp Require Import programs samplers.
Open Scope R_scope.

(** A round proposes i with weight w i, accepts it with probability k i, and else tries again. *)
Lemma rounds (n : nat) (w k f : nat -> R) (L : R) :
  sumn n (fun i => w i * (k i * f i + (1 - k i) * L))
    = sumn n (fun i => w i * k i * f i) + (sumn n w - sumn n (fun i => w i * k i)) * L.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.

(** [SelectExponential] draws c with a probability in proportion to exp (- missing c e / D), which
    is in proportion to exp (u c e / D) for missing c = best - u c. *)
Theorem select_distribution (n e D : nat) (missing : nat -> nat) (c : nat) :
  (0 < D)%nat -> (c < n)%nat ->
  let weight := fun i => exp (- (INR (missing i * e) / INR D)) in
  Un_cv (fun fuel => select law coin_distribution fuel n e D missing (fun i => if (i =? c)%nat then 1 else 0))
    (weight c / sumn n weight).
Proof.
  intros HD Hc weight.
  assert (0 < n)%nat as Hn by lia. apply lt_0_INR in Hn as Rn.
  assert (forall i, 0 < weight i <= 1) as Hw.
  { intros i. split; [apply exp_pos|]. rewrite <- exp_0. unfold weight.
    assert (0 <= INR (missing i * e) / INR D) as [H|H].
    { apply Rmult_le_pos; [apply pos_INR | left; apply Rinv_0_lt_compat, lt_0_INR, HD]. }
    - left. apply exp_increasing. lra.
    - rewrite <- H, Ropp_0. lra. }
  assert (0 < sumn n weight) as Hs by (apply sumn_pos; [exact Hn | intros; apply Hw]).
  assert (sumn n weight <= INR n) as Hs1.
  { rewrite <- (Rmult_1_r (INR n)), <- sumn_const.
    assert (0 <= sumn n (fun i => 1 + -1 * weight i)) as H
      by (apply sumn_nonneg; intros i _; specialize (Hw i); lra).
    rewrite sumn_plus, sumn_scale in H. lra. }
  replace (weight c / sumn n weight)
    with (weight c / INR n / (1 - (1 - sumn n weight / INR n))) by (field; lra).
  apply rejection; [split | reflexivity |].
  - apply Rmult_le_reg_r with (INR n); [lra|]. field_simplify; lra.
  - assert (0 < sumn n weight / INR n) by (apply Rdiv_lt_0_compat; lra). lra.
  - intros fuel. cbn -[INR Nat.mul Nat.div Nat.modulo bernoulli_exp Nat.eqb].
    set (f := fun i => if (i =? c)%nat then 1 else 0).
    set (L := select law coin_distribution fuel n e D missing f).
    rewrite (sumn_eq n _ (fun i => 1 * (weight i * f i + (1 - weight i) * L)))
      by (intros i _; rewrite coin_of_quotient by exact HD; fold (weight i); fold L; ring).
    rewrite rounds, sumn_const.
    rewrite (sumn_eq n (fun i => 1 * weight i * f i) (fun i => if (i =? c)%nat then weight i else 0))
      by (intros i _; cbv beta; unfold f; destruct (i =? c)%nat; rewrite ?Rmult_1_l, ?Rmult_1_r, ?Rmult_0_r; reflexivity).
    rewrite sumn_single by exact Hc.
    rewrite (sumn_eq n (fun i => 1 * weight i) weight) by (intros; apply Rmult_1_l). field. lra.
Qed.
