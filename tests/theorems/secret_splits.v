(** The bound of docs/proofs/secret-splits.md, for finite sets of outcomes.

    Models [mixed_delta] of xgb_dp/accounting/secret.py, whose arguments [first] and [second] are
    the curves W1 and W2 here. *)
Require Import Reals Lra List.
From XgbDp Require Import finite.
Open Scope R_scope.

Section OneCoin.
  Context {A C : Type}.
  Variables (outcomes : list A) (coins : list C).
  (* How likely the coins of all other units are, and what is released given them: without the
     unit, with the unit in the first part, and with it in the second part. *)
  Variable chance : C -> R.
  Variables (B A1 A2 : C -> A -> R).
  Variable q : R.
  Hypothesis chance_is_weight : forall c, In c coins -> 0 <= chance c.
  Hypothesis chances_sum : sum coins chance = 1.
  Hypothesis q_is_share : 0 < q < 1.

  (* Curves of what each part takes part in, given the coins of the others, at every real x. *)
  Variables (W1 W2 : R -> R).

  Definition without (a : A) : R := sum coins (fun c => chance c * B c a).
  Definition with_unit (a : A) : R :=
    sum coins (fun c => chance c * (q * A1 c a + (1 - q) * A2 c a)).

  (** A mixture over the coins of the others has no larger stick than the worst of them. *)
  Lemma mixture (E bound : R) (P Q : C -> A -> R) :
    (forall c, In c coins -> stick outcomes E (P c) (Q c) <= bound) ->
    stick outcomes E (fun a => sum coins (fun c => chance c * P c a))
      (fun a => sum coins (fun c => chance c * Q c a)) <= bound.
  Proof.
    intros H. revert chances_sum. intros Hsum.
    replace bound with (sum coins chance * bound) by (rewrite Hsum; ring).
    clear Hsum. revert H chance_is_weight. generalize coins as cs.
    induction cs as [|c cs IH]; intros H Hc; unfold stick in *; simpl.
    - rewrite Rmult_0_l. right. apply sum_zero. intros a. unfold pos, Rmax; destruct Rle_dec; lra.
    - assert (0 <= chance c) as Hw by (apply Hc; simpl; auto).
      assert (sum outcomes (fun a => pos (P c a - E * Q c a)) <= bound) as H1 by (apply H; simpl; auto).
      assert (sum outcomes (fun a => pos (sum cs (fun c => chance c * P c a)
                - E * sum cs (fun c => chance c * Q c a))) <= sum cs chance * bound) as H2.
      { apply IH; intros; [apply H | apply Hc]; simpl; auto. }
      eapply Rle_trans; [apply sum_le with (g := fun a => chance c * pos (P c a - E * Q c a)
         + pos (sum cs (fun c => chance c * P c a) - E * sum cs (fun c => chance c * Q c a)))|].
      + intros a _. rewrite <- pos_scale by exact Hw.
        eapply Rle_trans; [|apply pos_plus]. right. f_equal. ring.
      + rewrite sum_plus, sum_scale.
        apply (Rmult_le_compat_l (chance c)) in H1; [lra | exact Hw].
  Qed.

  (** "removed" of the pseudocode, where w divides the factor e^x. *)
  Theorem removed (x w : R) :
    0 < w < 1 ->
    (forall c y, In c coins -> stick outcomes (exp y) (A1 c) (B c) <= W1 y) ->
    (forall c y, In c coins -> stick outcomes (exp y) (A2 c) (B c) <= W2 y) ->
    stick outcomes (exp x) with_unit without
      <= q * W1 (x + ln ((1 - w) / q)) + (1 - q) * W2 (x + ln (w / (1 - q))).
  Proof.
    intros Hw H1 H2. unfold with_unit, without. apply mixture. intros c Hc.
    specialize (H1 c (x + ln ((1 - w) / q)) Hc). specialize (H2 c (x + ln (w / (1 - q))) Hc).
    assert (0 < (1 - w) / q) as P1 by (apply Rdiv_lt_0_compat; lra).
    assert (0 < w / (1 - q)) as P2 by (apply Rdiv_lt_0_compat; lra).
    rewrite exp_plus, exp_ln in H1, H2 by assumption.
    eapply Rle_trans; [|apply Rplus_le_compat;
      [apply Rmult_le_compat_l; [lra | exact H1] | apply Rmult_le_compat_l; [lra | exact H2]]].
    unfold stick. rewrite <- !sum_scale, <- sum_plus. apply sum_le. intros a _.
    rewrite <- !pos_scale by lra. eapply Rle_trans; [|apply pos_plus]. right. f_equal. field. lra.
  Qed.

  (** "added" of the pseudocode, where u divides what is released without the unit. *)
  Theorem added (x u : R) :
    0 < u < 1 ->
    (forall c y, In c coins -> stick outcomes (exp y) (B c) (A1 c) <= W1 y) ->
    (forall c y, In c coins -> stick outcomes (exp y) (B c) (A2 c) <= W2 y) ->
    stick outcomes (exp x) without with_unit
      <= u * W1 (x + ln (q / u)) + (1 - u) * W2 (x + ln ((1 - q) / (1 - u))).
  Proof.
    intros Hu H1 H2. unfold with_unit, without. apply mixture. intros c Hc.
    specialize (H1 c (x + ln (q / u)) Hc). specialize (H2 c (x + ln ((1 - q) / (1 - u))) Hc).
    assert (0 < q / u) as P1 by (apply Rdiv_lt_0_compat; lra).
    assert (0 < (1 - q) / (1 - u)) as P2 by (apply Rdiv_lt_0_compat; lra).
    rewrite exp_plus, exp_ln in H1, H2 by assumption.
    eapply Rle_trans; [|apply Rplus_le_compat;
      [apply Rmult_le_compat_l; [lra | exact H1] | apply Rmult_le_compat_l; [lra | exact H2]]].
    unfold stick. rewrite <- !sum_scale, <- sum_plus. apply sum_le. intros a _.
    rewrite <- !pos_scale by lra. eapply Rle_trans; [|apply pos_plus]. right. f_equal. field. lra.
  Qed.
End OneCoin.
