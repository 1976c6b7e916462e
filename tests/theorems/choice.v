(** The envelope of docs/proofs/choice.md, for finite sets of outcomes.

    Models [ChoiceCurve] of xgb_dp/accounting/choice.py: what follows a first release costs no more
    than the largest curve of the plans, at the factor that the first release leaves. *)
Require Import Reals Lra List.
From XgbDp Require Import finite.
Open Scope R_scope.

Section Envelope.
  Context {O A Plan : Type}.
  Variables (firsts : list O) (outcomes : list A).
  Variable rule : O -> Plan.  (* whoever chooses, after the first release *)
  Variables (P0 Q0 : O -> R).  (* the first release under the two neighbours *)
  Variables (P Q : Plan -> O -> A -> R).  (* what each plan releases after it *)
  Hypothesis weights : forall o, In o firsts -> 0 <= P0 o /\ 0 < Q0 o.
  Hypothesis later_weights : forall i o a, 0 <= Q i o a.

  (* Curves of the plans, whatever the first release has shown, and one above all of them. *)
  Variable V : Plan -> R -> R.
  Variable W : R -> R.
  Hypothesis curves : forall i o y, stick outcomes (exp y) (P i o) (Q i o) <= V i y.
  Hypothesis above : forall i y, V i y <= W y.

  (** The loss of the first release. *)
  Definition loss (o : O) : R := ln (P0 o / Q0 o).

  Theorem envelope (x : R) :
    sum firsts (fun o => stick outcomes (exp x) (fun a => P0 o * P (rule o) o a)
                                                (fun a => Q0 o * Q (rule o) o a))
      <= sum firsts (fun o => P0 o * W (x - loss o)).
  Proof.
    apply sum_le. intros o Ho. destruct (weights o Ho) as [HP HQ].
    destruct HP as [HP | HP].
    - assert (0 < P0 o / Q0 o) by (apply Rdiv_lt_0_compat; assumption).
      eapply Rle_trans; [|apply Rmult_le_compat_l;
        [lra | apply Rle_trans with (2 := above (rule o) (x - loss o)); apply (curves _ o)]].
      unfold stick. rewrite <- sum_scale. apply sum_le. intros a _.
      rewrite <- pos_scale by lra. right. f_equal.
      unfold loss, Rminus. rewrite exp_plus, exp_Ropp, exp_ln by assumption. field. lra.
    - rewrite <- HP, Rmult_0_l. unfold stick. right.
      apply sum_zero. intros a. rewrite Rmult_0_l.
      unfold pos. apply Rmax_right.
      pose proof (exp_pos x). pose proof (later_weights (rule o) o a).
      assert (0 <= exp x * (Q0 o * Q (rule o) o a)); [|lra].
      apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; lra.
  Qed.
End Envelope.
