(** Sums over finite sets of outcomes, and the hockey stick of two weights on them.

    [stick l E P Q] is the sum over outcomes of the positive part of P - E Q, where E is e^x. *)
Require Import Reals Lra List.
Import ListNotations.
Open Scope R_scope.

Section Sums.
  Context {A : Type}.

  Fixpoint sum (l : list A) (f : A -> R) : R :=
    match l with
    | [] => 0
    | a :: rest => f a + sum rest f
    end.

  Definition pos (x : R) : R := Rmax x 0.

  Definition stick (l : list A) (E : R) (P Q : A -> R) : R := sum l (fun a => pos (P a - E * Q a)).

  Lemma sum_le (l : list A) (f g : A -> R) :
    (forall a, In a l -> f a <= g a) -> sum l f <= sum l g.
  Proof.
    induction l as [|a l IH]; simpl; intros H; [lra|].
    apply Rplus_le_compat; [apply H; auto | apply IH; auto].
  Qed.

  Lemma sum_eq (l : list A) (f g : A -> R) :
    (forall a, In a l -> f a = g a) -> sum l f = sum l g.
  Proof.
    induction l as [|a l IH]; simpl; intros H; [reflexivity|].
    rewrite H, IH; auto.
  Qed.

  Lemma sum_zero (l : list A) (f : A -> R) : (forall a, f a = 0) -> sum l f = 0.
  Proof. intros H. induction l as [|a l IH]; simpl; [reflexivity | rewrite H, IH; ring]. Qed.

  Lemma sum_plus (l : list A) (f g : A -> R) : sum l (fun a => f a + g a) = sum l f + sum l g.
  Proof. induction l as [|a l IH]; simpl; [ring | rewrite IH; ring]. Qed.

  Lemma sum_scale (l : list A) (c : R) (f : A -> R) : sum l (fun a => c * f a) = c * sum l f.
  Proof. induction l as [|a l IH]; simpl; [ring | rewrite IH; ring]. Qed.

  Lemma sum_nonneg (l : list A) (f : A -> R) : (forall a, In a l -> 0 <= f a) -> 0 <= sum l f.
  Proof.
    induction l as [|a l IH]; simpl; intros H; [lra|].
    assert (0 <= f a) by (apply H; auto). assert (0 <= sum l f) by (apply IH; auto). lra.
  Qed.

  Lemma sum_pos (l : list A) (f : A -> R) :
    l <> [] -> (forall a, In a l -> 0 < f a) -> 0 < sum l f.
  Proof.
    destruct l as [|a l]; intros Hl H; [congruence|]. simpl.
    assert (0 < f a) by (apply H; simpl; auto).
    assert (0 <= sum l f) by (apply sum_nonneg; intros b Hb; left; apply H; simpl; auto). lra.
  Qed.

  Lemma pos_nonneg (x : R) : 0 <= pos x.
  Proof. apply Rmax_r. Qed.

  Lemma pos_ge (x : R) : x <= pos x.
  Proof. apply Rmax_l. Qed.

  Lemma pos_plus (x y : R) : pos (x + y) <= pos x + pos y.
  Proof. unfold pos, Rmax; repeat destruct Rle_dec; lra. Qed.

  Lemma pos_scale (c x : R) : 0 <= c -> pos (c * x) = c * pos x.
  Proof. intros H. unfold pos. rewrite <- (Rmult_0_r c) at 1. apply RmaxRmult, H. Qed.

  (** The stick bounds what any set of outcomes tells: P(S) <= E Q(S) + stick. *)
  Theorem stick_bounds_every_event (l : list A) (E : R) (P Q : A -> R) (S : A -> bool) :
    sum l (fun a => if S a then P a else 0)
      <= E * sum l (fun a => if S a then Q a else 0) + stick l E P Q.
  Proof.
    rewrite <- sum_scale. unfold stick. rewrite <- sum_plus. apply sum_le. intros a _.
    pose proof (pos_ge (P a - E * Q a)). pose proof (pos_nonneg (P a - E * Q a)).
    destruct (S a); lra.
  Qed.
End Sums.
