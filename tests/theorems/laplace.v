(** The law of discrete Laplace noise (docs/proofs/samplers.md, section 5). *)
Require Import Reals Lra Lia List ZArith Arith.
From XgbDp Require Import programs samplers select.
Open Scope R_scope.

Definition is (x y : Z) : R := if (y =? x)%Z then 1 else 0.

(** e^(-1/t), of which all probabilities here are powers. *)
Definition ratio (t : nat) : R := exp (- (1 / INR t)).

Lemma exp_pow (x : R) (n : nat) : exp (- (INR n * x)) = exp (- x) ^ n.
Proof.
  induction n; [simpl; rewrite Rmult_0_l, Ropp_0; apply exp_0|].
  rewrite S_INR. replace (- ((INR n + 1) * x)) with (- x + - (INR n * x)) by ring.
  rewrite exp_plus, IHn. reflexivity.
Qed.

Lemma coin_of_ratio (u t : nat) : (0 < t)%nat -> exp (- (INR u / INR t)) = ratio t ^ u.
Proof.
  intros Ht. apply lt_0_INR in Ht. unfold ratio. rewrite <- exp_pow. do 2 f_equal. field. lra.
Qed.

Lemma ratio_bounds (t : nat) : (0 < t)%nat -> 0 < ratio t < 1.
Proof.
  intros Ht. apply lt_0_INR in Ht. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
  assert (0 < 1 / INR t) by (apply Rdiv_lt_0_compat; lra). lra.
Qed.

Lemma geometric_distribution (most v t : nat) (f : nat -> R) :
  (0 < t)%nat ->
  geometric law coin_distribution most v f
    = sumn most (fun j => (ratio t ^ t) ^ j * (1 - ratio t ^ t) * f (v + j)%nat).
Proof.
  intros Ht. revert v.
  assert (exp (- (INR 1 / INR 1)) = ratio t ^ t) as E.
  { rewrite <- coin_of_ratio by exact Ht. apply lt_0_INR in Ht. f_equal. simpl (INR 1). field. lra. }
  induction most; intros v; [reflexivity|].
  change (S most) with (1 + most)%nat. rewrite sumn_split.
  set (R := ratio t ^ t) in *.
  cbn [geometric bind law Nat.add]. unfold coin_distribution at 1. rewrite E, IHmost. cbn [sumn].
  rewrite Nat.add_0_r, <- sumn_scale, Rplus_comm. f_equal.
  - cbn [ret law]. simpl pow. ring.
  - apply sumn_eq. intros i _. replace (v + S i)%nat with (S v + i)%nat by lia. simpl pow. ring.
Qed.

(** Of all u < t and v < most one pair has u + t v = X. *)
Lemma one_pair (t most X : nat) (r c : R) :
  (0 < t)%nat -> (X / t < most)%nat ->
  sumn t (fun u => r ^ u * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? X)%nat then c else 0)))
    = r ^ X * c.
Proof.
  intros Ht HX. pose proof (Nat.mod_upper_bound X t). pose proof (Nat.div_mod X t).
  rewrite (sumn_eq t _ (fun u => if (u =? X mod t)%nat
      then r ^ u * sumn most (fun v => if (v =? X / t)%nat then (r ^ t) ^ v * c else 0) else 0)).
  - rewrite sumn_single, sumn_single by lia.
    rewrite <- pow_mult, <- Rmult_assoc, <- pow_add. do 2 f_equal. lia.
  - intros u Hu. destruct (Nat.eqb_spec u (X mod t)) as [E|E].
    + f_equal. apply sumn_eq. intros v _.
      destruct (Nat.eqb_spec v (X / t)) as [F|F], (Nat.eqb_spec (u + t * v) X) as [G|G]; try ring.
      * exfalso. apply G. subst. lia.
      * exfalso. apply F. apply (Nat.div_unique X t v u); lia.
    + rewrite (sumn_eq most _ (fun _ => 0)), sumn_const; [ring|]. intros v _.
      destruct (Nat.eqb_spec (u + t * v) X) as [G|G]; [|ring].
      exfalso. apply E. apply (Nat.mod_unique X t v u); lia.
Qed.

Definition laplace_weight (t : nat) (x : Z) : R :=
  (1 - ratio t) / (1 + ratio t) * ratio t ^ Z.abs_nat x.

(** [DiscreteLaplace], for every x that its check lets through: most is [kMaxGeometric]. *)
Theorem laplace_distribution (most t : nat) (x : Z) :
  (0 < t)%nat -> (Z.abs_nat x / t < most)%nat ->
  Un_cv (fun fuel => laplace law coin_distribution fuel most t (is x)) (laplace_weight t x).
Proof.
  intros Ht Hx. set (r := ratio t). destruct (ratio_bounds t Ht) as [Hr0 Hr1]. fold r in Hr0, Hr1.
  apply lt_0_INR in Ht as Rt.
  assert (0 < r ^ t < 1) as Hrt.
  { split; [apply pow_lt, Hr0|]. destruct t; [lia|]. apply pow_lt_1_compat; [lra | lia]. }
  set (q := 1 - r ^ t). set (X := Z.abs_nat x).
  set (Z0 := sumn t (fun u => r ^ u)).
  assert (Z0 * (1 - r) = q) as HZ0 by apply sumn_geometric.
  set (rho := 1 - Z0 / INR t + q / (2 * INR t)).
  assert (Z0 = q / (1 - r)) as EZ by (rewrite <- HZ0; field; lra).
  assert (1 - rho = q * (1 + r) / (2 * INR t * (1 - r))) as Erho
    by (unfold rho; rewrite EZ; field; lra).
  assert (0 < q) as Hq by (unfold q; lra).
  replace (laplace_weight t x) with (q * r ^ X / (2 * INR t) / (1 - rho))
    by (rewrite Erho; unfold laplace_weight; fold r X; field; repeat split; lra).
  apply rejection; [split | reflexivity |].
  - assert (Z0 <= INR t) as H.
    { assert (0 <= sumn t (fun u => 1 + -1 * r ^ u)) as H.
      { apply sumn_nonneg. intros u _. assert (r ^ u <= 1); [|lra].
        rewrite <- (pow1 u). apply pow_incr. lra. }
      rewrite sumn_plus, sumn_const, (sumn_scale t (-1) (fun u => r ^ u)) in H.
      fold Z0 in H. lra. }
    assert (Z0 / INR t <= 1) as H1
      by (apply Rmult_le_reg_r with (INR t); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
    assert (0 < q / (2 * INR t)) as H2 by (apply Rdiv_lt_0_compat; lra).
    unfold rho. clear - H1 H2. lra.
  - assert (0 < 1 - rho) as H; [|lra]. rewrite Erho.
    apply Rdiv_lt_0_compat; repeat apply Rmult_lt_0_compat; lra.
  - intros fuel. cbn -[INR geometric is Nat.eqb].
    set (L := laplace law coin_distribution fuel most t (is x)).
    rewrite (sumn_eq t _ (fun u => r ^ u * (q * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? X)%nat then 1 / 2 else 0)))
        + r ^ u * (q * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? 0)%nat then L / 2 else 0)))
        + (1 - r ^ u) * L)).
    + rewrite !sumn_plus.
      rewrite (sumn_eq t (fun u => r ^ u * (q * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? X)%nat then 1 / 2 else 0)))) (fun u => q * (r ^ u * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? X)%nat then 1 / 2 else 0)))))
        by (intros; ring).
      rewrite (sumn_eq t (fun u => r ^ u * (q * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? 0)%nat then L / 2 else 0)))) (fun u => q * (r ^ u * sumn most (fun v => (r ^ t) ^ v * (if (u + t * v =? 0)%nat then L / 2 else 0)))))
        by (intros; ring).
      rewrite !sumn_scale, one_pair by assumption.
      rewrite one_pair by (try assumption; rewrite Nat.div_small by lia; lia).
      rewrite (sumn_eq t (fun u => (1 - r ^ u) * L) (fun u => L + - L * r ^ u)) by (intros; ring).
      rewrite sumn_plus, sumn_const, (sumn_scale t (- L) (fun u => r ^ u)). fold Z0.
      unfold rho. rewrite pow_O. field. lra.
    + intros u Hu. unfold coin_distribution at 1. rewrite coin_of_ratio by exact Ht. fold r.
      rewrite (geometric_distribution most 0 t) by exact Ht. fold r. cbn [Nat.add].
      rewrite <- Rmult_plus_distr_l, <- Rmult_plus_distr_l, <- sumn_plus.
      f_equal. f_equal. rewrite <- sumn_scale. apply sumn_eq. intros v _. fold q.
      cbn -[INR is Nat.eqb laplace]. change (0 =? 1)%nat with false. change (1 =? 1)%nat with true.
      cbv beta iota. unfold X. replace (INR 2) with 2 by (simpl; ring).
      destruct (Nat.eqb_spec (u + t * v) 0) as [E|E];
        [change (laplace law coin_distribution fuel most t (is x)) with L|];
        destruct (Nat.eqb_spec (u + t * v) (Z.abs_nat x)) as [F|F]; unfold is;
        repeat match goal with |- context [(?a =? ?b)%Z] => destruct (Z.eqb_spec a b) end;
        try (exfalso; lia); simpl INR; field.
Qed.
