(** Bounded range: the exponential mechanism has it, and what a sequence of selections costs.

    [exponential_mechanism] is about the law of [SelectExponential] of
    plugin_cpp/random/exponential.cc (docs/proofs/exponential-mechanism.md); that the code draws
    from this law is in samplers.v. [composition] is the recursion of
    xgb_dp/accounting/bounded_range.py, as docs/proofs/accounting.md states it. *)
Require Import Reals Lra List.
From XgbDp Require Import finite.
Import ListNotations.
Open Scope R_scope.

(** * The exponential mechanism *)
Section Exponential.
  Context {A : Type}.
  Variable candidates : list A.
  Variable rate : R.  (* eps_num / den *)
  Hypothesis rate_nonneg : 0 <= rate.

  Definition law (u : A -> R) (c : A) : R :=
    exp (rate * u c) / sum candidates (fun j => exp (rate * u j)).

  Theorem exponential_mechanism (u v : A -> R) (m r : R) :
    candidates <> [] ->
    (forall c, In c candidates -> m <= v c - u c <= m + r) ->
    exists low, low <= 0 <= low + rate * r /\
      forall c, In c candidates -> low <= ln (law v c / law u c) <= low + rate * r.
  Proof.
    intros Hne Hd.
    set (U := sum candidates (fun j => exp (rate * u j))).
    set (V := sum candidates (fun j => exp (rate * v j))).
    assert (0 < U) as HU by (apply sum_pos; [exact Hne | intros; apply exp_pos]).
    assert (0 < V) as HV by (apply sum_pos; [exact Hne | intros; apply exp_pos]).
    assert (exp (rate * m) * U <= V) as H1.
    { unfold U, V. rewrite <- sum_scale. apply sum_le. intros a Ha. rewrite <- exp_plus.
      destruct (Hd a Ha) as [Hl _].
      assert (rate * m <= rate * (v a - u a)) as Hm by (apply Rmult_le_compat_l; lra).
      destruct Hm as [Hm | Hm]; [left; apply exp_increasing; lra | right; f_equal; lra]. }
    assert (V <= exp (rate * (m + r)) * U) as H2.
    { unfold U, V. rewrite <- sum_scale. apply sum_le. intros a Ha. rewrite <- exp_plus.
      destruct (Hd a Ha) as [_ Hh].
      assert (rate * (v a - u a) <= rate * (m + r)) as Hm by (apply Rmult_le_compat_l; lra).
      destruct Hm as [Hm | Hm]; [left; apply exp_increasing; lra | right; f_equal; lra]. }
    assert (rate * m <= ln (V / U) <= rate * (m + r)) as Hmean.
    { assert (0 < V / U) by (apply Rdiv_lt_0_compat; assumption).
      assert (exp (rate * m) <= V / U) as E1
        by (apply Rmult_le_reg_r with U; [assumption|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
      assert (V / U <= exp (rate * (m + r))) as E2
        by (apply Rmult_le_reg_r with U; [assumption|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
      split.
      - rewrite <- (ln_exp (rate * m)). destruct E1 as [E1 | E1];
          [left; apply ln_increasing; [apply exp_pos | exact E1] | right; f_equal; exact E1].
      - rewrite <- (ln_exp (rate * (m + r))). destruct E2 as [E2 | E2];
          [left; apply ln_increasing; [assumption | exact E2] | right; f_equal; exact E2]. }
    exists (rate * m - ln (V / U)). split; [lra|]. intros c Hc. destruct (Hd c Hc) as [Hl Hh].
    assert (law v c / law u c = exp (rate * (v c - u c) - ln (V / U))) as E.
    { unfold law. fold U V. unfold Rminus at 1. rewrite exp_plus, exp_Ropp, exp_ln
        by (apply Rdiv_lt_0_compat; assumption).
      replace (rate * (v c - u c)) with (rate * v c + - (rate * u c)) by ring.
      rewrite exp_plus, exp_Ropp. field.
      repeat split; try lra; apply Rgt_not_eq, exp_pos. }
    rewrite E, ln_exp.
    assert (rate * m <= rate * (v c - u c)) by (apply Rmult_le_compat_l; lra).
    assert (rate * (v c - u c) <= rate * (m + r)) by (apply Rmult_le_compat_l; lra). lra.
  Qed.
End Exponential.

(** * Composition *)

(** Releases one after the other: which one follows depends on what was published. *)
Inductive training : Type :=
  | Done
  | Release (outcomes : list nat) (P Q : nat -> R) (next : nat -> training).

(** The stick of everything published, for paths of weights a and b = E times that of Q. *)
Fixpoint stick_of (t : training) (a b : R) : R :=
  match t with
  | Done => pos (a - b)
  | Release l P Q next => sum l (fun o => stick_of (next o) (a * P o) (b * Q o))
  end.

(** Each release has a range eps: all its losses ln (P / Q) lie in one interval of this length. *)
Definition of_range (eps : R) (l : list nat) (P Q : nat -> R) : Prop :=
  sum l P = 1 /\ sum l Q = 1 /\
  exists t, 0 <= t <= eps /\
    forall o, In o l -> 0 < P o /\ exp (- t) * P o <= Q o <= exp (eps - t) * P o.

Fixpoint within (ranges : list R) (t : training) : Prop :=
  match t with
  | Done => True
  | Release l P Q next =>
      match ranges with
      | [] => False
      | eps :: rest => of_range eps l P Q /\ forall o, In o l -> within rest (next o)
      end
  end.

Definition q_of (eps t : R) : R := (1 - exp (t - eps)) / (1 - exp (- eps)).

(** Curves as functions of the factor E = e^x, for each number of releases that are left. *)
Definition convex (W : R -> R) : Prop :=
  forall x y w, 0 <= x -> 0 <= y -> 0 <= w <= 1 -> W (w * x + (1 - w) * y) <= w * W x + (1 - w) * W y.

Fixpoint bounds (ranges : list R) (W : nat -> R -> R) : Prop :=
  match ranges with
  | [] => True
  | eps :: rest =>
      0 < eps /\
      (forall E t, 0 <= E -> 0 <= t <= eps ->
        q_of eps t * W (length rest) (E * exp (- t))
          + (1 - q_of eps t) * W (length rest) (E * exp (eps - t)) <= W (S (length rest)) E)
      /\ bounds rest W
  end.

Section Composition.
  Variable W : nat -> R -> R.
  Hypothesis begins : forall n E, 0 <= E -> pos (1 - E) <= W n E.
  Hypothesis is_convex : forall n, convex (W n).

  (** A release of bounded range costs no more than one with two outcomes, at the ends. *)
  Lemma two_points (eps t : R) (l : list nat) (P Q : nat -> R) (V : R -> R) (E : R) :
    0 < eps -> 0 <= E -> convex V ->
    sum l P = 1 -> sum l Q = 1 ->
    (forall o, In o l -> 0 < P o /\ exp (- t) * P o <= Q o <= exp (eps - t) * P o) ->
    sum l (fun o => P o * V (E * (Q o / P o)))
      <= q_of eps t * V (E * exp (- t)) + (1 - q_of eps t) * V (E * exp (eps - t)).
  Proof.
    intros He0 HE HV HP HQ H.
    set (lo := exp (- t)) in *. set (hi := exp (eps - t)) in *.
    assert (lo < hi) as Hlh by (apply exp_increasing; lra).
    assert (0 < lo) as Hlo by apply exp_pos.
    (* The weight of the lower end is linear in s = Q / P. *)
    set (A := V (E * lo)). set (B := V (E * hi)).
    apply Rle_trans with (sum l (fun o => (hi * P o - Q o) / (hi - lo) * A + (Q o - lo * P o) / (hi - lo) * B)).
    - apply sum_le. intros o Ho. destruct (H o Ho) as [Hp [H1 H2]].
      set (s := Q o / P o).
      assert (Q o = s * P o) as Es by (unfold s; field; lra).
      assert (lo <= s) as S1 by (apply Rmult_le_reg_r with (P o); [assumption | rewrite <- Es; assumption]).
      assert (s <= hi) as S2 by (apply Rmult_le_reg_r with (P o); [assumption | rewrite <- Es; assumption]).
      rewrite Es.
      assert (0 <= (hi - s) / (hi - lo) <= 1) as Hw.
      { split; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]|].
        apply Rmult_le_reg_r with (hi - lo); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
      assert (V (E * s) <= (hi - s) / (hi - lo) * A + (1 - (hi - s) / (hi - lo)) * B) as Hc.
      { unfold A, B. replace (E * s) with
          ((hi - s) / (hi - lo) * (E * lo) + (1 - (hi - s) / (hi - lo)) * (E * hi)) by (field; lra).
        apply HV; [apply Rmult_le_pos; lra | apply Rmult_le_pos; lra | exact Hw]. }
      apply (Rmult_le_compat_l (P o)) in Hc; [|lra].
      eapply Rle_trans; [exact Hc|]. right. field. lra.
    - right.
      rewrite (sum_eq l _ (fun o => (hi * A - lo * B) / (hi - lo) * P o + (B - A) / (hi - lo) * Q o))
        by (intros; field; lra).
      rewrite sum_plus, !sum_scale, HP, HQ. unfold q_of. fold A B.
      assert (exp (t - eps) = / hi) as E1
        by (unfold hi; rewrite <- exp_Ropp; f_equal; ring).
      assert (exp (- eps) = lo / hi) as E2
        by (unfold hi, lo, Rdiv; rewrite <- exp_Ropp, <- exp_plus; f_equal; ring).
      rewrite E1, E2. field. split; lra.
  Qed.

  (** The worst adaptive sequence costs at most the curve of the recursion. *)
  Theorem composition (ranges : list R) (t : training) (a b : R) :
    bounds ranges W -> within ranges t -> 0 < a -> 0 <= b ->
    stick_of t a b <= a * W (length ranges) (b / a).
  Proof.
    revert t a b. induction ranges as [|eps rest IH]; intros [|l P Q next] a b Hb Hw Ha Hb0;
      simpl in Hw; try contradiction.
    1, 2: simpl; replace (a - b) with (a * (1 - b / a)) by (field; lra);
      rewrite pos_scale by lra; apply Rmult_le_compat_l; [lra|]; apply begins;
      apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
    destruct Hb as [He0 [Hstep Hrest]]. destruct Hw as [[HP [HQ [t [Ht Hr]]]] Hnext].
    assert (0 <= b / a) as HE by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
    simpl stick_of. simpl length.
    apply Rle_trans with (a * sum l (fun o => P o * W (length rest) (b / a * (Q o / P o)))).
    - rewrite <- sum_scale. apply sum_le. intros o Ho. destruct (Hr o Ho) as [Hp [H1 _]].
      assert (0 <= Q o) as Hq0
        by (eapply Rle_trans; [|exact H1]; apply Rmult_le_pos; [left; apply exp_pos | lra]).
      eapply Rle_trans; [apply IH; auto; [apply Rmult_lt_0_compat; lra | apply Rmult_le_pos; lra]|].
      right. rewrite Rmult_assoc. do 3 f_equal. field. split; lra.
    - apply Rmult_le_compat_l; [lra|].
      eapply Rle_trans; [apply two_points with (eps := eps) (t := t); auto | apply Hstep; auto].
  Qed.
End Composition.

(** * Together: what the trainer's selections cost *)
Lemma distribution_sums (l : list nat) (rate : R) (u : nat -> R) : l <> [] -> sum l (law l rate u) = 1.
Proof.
  intros Hne. set (U := sum l (fun j => exp (rate * u j))).
  assert (0 < U) as HU by (apply sum_pos; [exact Hne | intros; apply exp_pos]).
  rewrite (sum_eq l _ (fun c => / U * exp (rate * u c)))
    by (intros; unfold law; fold U; field; lra).
  rewrite sum_scale. fold U. field. lra.
Qed.

Theorem selection_has_its_range (l : list nat) (rate m r : R) (u v : nat -> R) :
  0 <= rate -> l <> [] -> (forall c, In c l -> m <= v c - u c <= m + r) ->
  of_range (rate * r) l (law l rate v) (law l rate u).
Proof.
  intros Hrate Hne Hd.
  destruct (exponential_mechanism l rate Hrate u v m r Hne Hd) as [low [[Hl Hh] H]].
  split; [apply distribution_sums, Hne|]. split; [apply distribution_sums, Hne|].
  exists (low + rate * r). split; [lra|]. intros c Hc.
  assert (forall w, 0 < law l rate w c) as Hpos.
  { intros w. apply Rdiv_lt_0_compat; [apply exp_pos|].
    apply sum_pos; [exact Hne | intros; apply exp_pos]. }
  pose proof (Hpos u) as Hu. pose proof (Hpos v) as Hv. destruct (H c Hc) as [H1 H2].
  assert (law l rate u c = exp (- ln (law l rate v c / law l rate u c)) * law l rate v c) as E.
  { rewrite exp_Ropp, exp_ln by (apply Rdiv_lt_0_compat; assumption). field. split; lra. }
  split; [exact Hv|]. rewrite E at 1 2.
  split; apply Rmult_le_compat_r; try lra.
  - destruct H2 as [H2 | H2]; [left; apply exp_increasing; lra | right; f_equal; lra].
  - destruct H1 as [H1 | H1]; [left; apply exp_increasing; lra | right; f_equal; lra].
Qed.
