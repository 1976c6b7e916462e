(** The laws of the programs of programs.v: those of docs/proofs/samplers.md and of the first
    section of docs/proofs/exponential-mechanism.md.

    The law of a program is what it gives any function of its result on average. As the fuel grows,
    each law converges to the one that a theorem names. *)
Require Import Reals Lra Lia List ZArith Arith.
From XgbDp Require Import programs.
Open Scope R_scope.

Fixpoint sumn (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S k => sumn k f + f k
  end.

Definition law : monad := {|
  M := fun A => (A -> R) -> R;
  ret := fun A a f => f a;
  bind := fun A B p k f => p (fun a => k a f);
  uniform := fun n f => sumn n f / INR n;
  stuck := fun A f => 0
|}.

(** The coin that [BernoulliExpFrac] is, by [bernoulli_exp_frac_distribution]. *)
Definition coin_distribution (a b : nat) : M law bool :=
  fun f => exp (- (INR a / INR b)) * f true + (1 - exp (- (INR a / INR b))) * f false.

(** * Sums *)
Lemma sumn_eq (n : nat) (f g : nat -> R) : (forall i, (i < n)%nat -> f i = g i) -> sumn n f = sumn n g.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, H by auto with arith. reflexivity. Qed.

Lemma sumn_plus (n : nat) (f g : nat -> R) : sumn n (fun i => f i + g i) = sumn n f + sumn n g.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.

Lemma sumn_scale (n : nat) (c : R) (f : nat -> R) : sumn n (fun i => c * f i) = c * sumn n f.
Proof. induction n; simpl; [ring | rewrite IHn; ring]. Qed.

Lemma sumn_const (n : nat) (c : R) : sumn n (fun _ => c) = INR n * c.
Proof. induction n; [simpl; ring|]. cbn [sumn]. rewrite IHn, S_INR. ring. Qed.

Lemma sumn_nonneg (n : nat) (f : nat -> R) : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sumn n f.
Proof.
  induction n; simpl; intros H; [lra|].
  assert (0 <= f n) by auto with arith. assert (0 <= sumn n f) by auto with arith. lra.
Qed.

Lemma sumn_pos (n : nat) (f : nat -> R) :
  (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < sumn n f.
Proof.
  destruct n; [lia|]. intros _ H. simpl. assert (0 < f n) by auto with arith.
  assert (0 <= sumn n f) by (apply sumn_nonneg; intros; left; auto with arith). lra.
Qed.

Lemma sumn_single (n k : nat) (f : nat -> R) :
  (k < n)%nat -> sumn n (fun i => if (i =? k)%nat then f i else 0) = f k.
Proof.
  induction n; intros H; [lia|]. simpl. destruct (Nat.eq_dec n k) as [->|Hn].
  - rewrite Nat.eqb_refl. rewrite (sumn_eq k _ (fun _ => 0)), sumn_const; [ring|].
    intros i Hi. destruct (Nat.eqb_spec i k); [lia | reflexivity].
  - destruct (Nat.eqb_spec n k); [lia|]. rewrite IHn by lia. ring.
Qed.

Lemma sumn_split (a n : nat) (f : nat -> R) :
  sumn (a + n) f = sumn a f + sumn n (fun i => f (a + i)%nat).
Proof.
  induction n; simpl; [rewrite Nat.add_0_r; ring|].
  rewrite Nat.add_succ_r. simpl. rewrite IHn. ring.
Qed.

Lemma sumn_below (n a : nat) (x y : R) :
  (a <= n)%nat -> sumn n (fun i => if (i <? a)%nat then x else y) = INR a * x + (INR n - INR a) * y.
Proof.
  intros H. replace n with (a + (n - a))%nat by lia. rewrite sumn_split.
  rewrite (sumn_eq a _ (fun _ => x)), (sumn_eq (n - a) _ (fun _ => y)), !sumn_const.
  - rewrite plus_INR. ring.
  - intros i _. destruct (Nat.ltb_spec (a + i) a); [lia | reflexivity].
  - intros i Hi. destruct (Nat.ltb_spec i a); [reflexivity | lia].
Qed.

Lemma sumn_geometric (n : nat) (r : R) : sumn n (fun i => r ^ i) * (1 - r) = 1 - r ^ n.
Proof. induction n; simpl; [ring|]. rewrite Rmult_plus_distr_r, IHn. ring. Qed.

Lemma cv_const (c : R) : Un_cv (fun _ => c) c.
Proof. intros e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0; auto. Qed.

Lemma cv_ext (f g : nat -> R) (l : R) : (forall n, f n = g n) -> Un_cv f l -> Un_cv g l.
Proof. intros H Hf e He. destruct (Hf e He) as [N HN]. exists N. intros. rewrite <- H. auto. Qed.

(** * Rejection: what is accepted with weight A, and tried again with probability rho *)
Lemma rejection (L : nat -> R) (A rho : R) :
  0 <= rho < 1 -> L O = 0 -> (forall n, L (S n) = A + rho * L n) -> Un_cv L (A / (1 - rho)).
Proof.
  intros Hr H0 HS.
  apply cv_ext with (f := fun n => A / (1 - rho) - A / (1 - rho) * rho ^ n).
  - induction n; [rewrite H0; simpl; ring|]. rewrite HS, <- IHn. simpl. field. lra.
  - replace (A / (1 - rho)) with (A / (1 - rho) - A / (1 - rho) * 0) at 1 by ring.
    apply CV_minus; [apply cv_const|]. apply CV_mult; [apply cv_const|].
    intros e He. destruct (pow_lt_1_zero rho) with (y := e) as [N HN]; [rewrite Rabs_right; lra | lra|].
    exists N. intros n Hn. unfold R_dist. rewrite Rminus_0_r. apply HN, Hn.
Qed.

(** * Uniform integers *)
Lemma sumn_drop (s : nat) (n : nat) (f : nat -> R) :
  (0 < s)%nat -> sumn (n * s) (fun w => f (w / s)%nat) = INR s * sumn n f.
Proof.
  intros Hs. induction n; [simpl; ring|].
  replace (S n * s)%nat with (n * s + s)%nat by lia. rewrite sumn_split, IHn. simpl.
  rewrite (sumn_eq s (fun i => f ((n * s + i) / s)%nat) (fun _ => f n)), sumn_const; [ring|].
  intros i Hi. f_equal. rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia. lia.
Qed.

Theorem uniform_below_distribution (bits shift n : nat) (f : nat -> R) :
  (0 < n <= 2 ^ bits)%nat ->
  Un_cv (fun fuel => uniform_below law fuel bits shift n f) (sumn n f / INR n).
Proof.
  intros [Hn Hb].
  assert (0 < 2 ^ shift)%nat as Hs by (apply Nat.neq_0_lt_0, Nat.pow_nonzero; lia).
  assert (0 < 2 ^ bits)%nat as Hp by lia.
  pose proof (lt_0_INR _ Hs) as Rs. pose proof (lt_0_INR _ Hp) as Rp. pose proof (lt_0_INR _ Hn) as Rn.
  apply le_INR in Hb as Rb.
  replace (sumn n f / INR n)
    with (sumn n f / INR (2 ^ bits) / (1 - (INR (2 ^ bits) - INR n) / INR (2 ^ bits)))
    by (replace (1 - (INR (2 ^ bits) - INR n) / INR (2 ^ bits)) with (INR n / INR (2 ^ bits))
          by (field; lra); field; split; lra).
  apply rejection; [split| reflexivity |].
  - apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
  - apply Rmult_lt_reg_r with (INR (2 ^ bits)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
  - intros fuel. cbn -[Nat.pow INR Nat.ltb Nat.mul Nat.div].
    set (L := uniform_below law fuel bits shift n f).
    rewrite (sumn_eq _ _ (fun w => (fun r => if (r <? n)%nat then f r else L) (w / 2 ^ shift)%nat))
      by (intros; destruct (_ <? _)%nat; reflexivity).
    rewrite (sumn_drop _ _ (fun r => if (r <? n)%nat then f r else L)) by exact Hs.
    rewrite mult_INR.
    replace (2 ^ bits)%nat with (n + (2 ^ bits - n))%nat at 1 by lia. rewrite sumn_split.
    rewrite (sumn_eq n _ f) by (intros i Hi; destruct (Nat.ltb_spec i n); [reflexivity | lia]).
    rewrite (sumn_eq (2 ^ bits - n) _ (fun _ => L))
      by (intros i Hi; destruct (Nat.ltb_spec (n + i) n); [lia | reflexivity]).
    rewrite sumn_const, minus_INR by lia. field. lra.
Qed.

(** * The coin of probability exp (- a / b) *)
Definition term (g : R) (j : nat) : R := g ^ j / INR (fact j).

Lemma term_S (g : R) (j : nat) : term g (S j) = term g j * (g / INR (S j)).
Proof.
  unfold term. rewrite fact_simpl, mult_INR. simpl pow. field.
  split; first [apply INR_fact_neq_0 | apply not_0_INR; lia].
Qed.

Lemma coin_step (fuel a b k : nat) (f : bool -> R) :
  (0 < b)%nat -> (a <= b)%nat -> (0 < k)%nat ->
  bernoulli_exp_frac law (S fuel) a b k f
    = INR a / INR b / INR k * bernoulli_exp_frac law fuel a b (S k) f
      + (1 - INR a / INR b / INR k) * f (Nat.odd k).
Proof.
  intros Hb Hab Hk. apply lt_0_INR in Hb as Rb. apply lt_0_INR in Hk as Rk.
  cbn -[INR Nat.ltb Nat.eqb Nat.odd].
  set (L := bernoulli_exp_frac law fuel a b (S k) f). set (F := f (Nat.odd k)).
  rewrite (sumn_eq b _ (fun x => if (x <? a)%nat then (L + (INR k - 1) * F) / INR k else F)).
  - rewrite sumn_below by exact Hab. field. lra.
  - intros x _. destruct (x <? a)%nat; [|reflexivity]. cbn -[INR Nat.ltb Nat.eqb Nat.odd].
    rewrite (sumn_eq k _ (fun y => if (y <? 1)%nat then L else F))
      by (intros [|y] _; reflexivity).
    rewrite sumn_below by lia. simpl (INR 1). f_equal. ring.
Qed.

Lemma coin_sum (fuel a b p : nat) (f : bool -> R) :
  (0 < b)%nat -> (a <= b)%nat ->
  term (INR a / INR b) p * bernoulli_exp_frac law fuel a b (S p) f
    = sumn fuel (fun j => (term (INR a / INR b) (p + j) - term (INR a / INR b) (S (p + j)))
                          * f (Nat.odd (S (p + j)))).
Proof.
  intros Hb Hab. revert p. induction fuel; intros p; [cbn; ring|].
  rewrite coin_step by (assumption || lia). change (S fuel) with (1 + fuel)%nat.
  rewrite sumn_split. cbn [sumn]. rewrite Nat.add_0_r.
  rewrite (sumn_eq fuel _ (fun j => (term (INR a / INR b) (S p + j) - term (INR a / INR b) (S (S p + j)))
    * f (Nat.odd (S (S p + j))))) by (intros; replace (p + (1 + i))%nat with (S p + i)%nat by lia; reflexivity).
  rewrite <- IHfuel, term_S. ring.
Qed.

Lemma alternating (g : R) (n : nat) (x y : R) :
  sumn n (fun j => (term g j - term g (S j)) * (if Nat.odd (S j) then x else y))
    = y * (1 - term g n) + (x - y) * (sumn n (term (- g)) - (if Nat.odd n then term g n else 0)).
Proof.
  induction n.
  - cbn. unfold term. simpl. field.
  - cbn [sumn]. rewrite IHn. rewrite Nat.odd_succ.
    assert (term (- g) n = (if Nat.odd n then -1 else 1) * term g n) as ->.
    { unfold term. replace (- g) with (-1 * g) by ring. rewrite Rpow_mult_distr.
      destruct (Nat.odd n) eqn:E.
      - apply Nat.odd_spec in E. destruct E as [k ->]. rewrite Nat.add_1_r, pow_1_odd. field.
        apply INR_fact_neq_0.
      - assert (Nat.even n = true) as E' by (rewrite <- Nat.negb_odd, E; reflexivity).
        apply Nat.even_spec in E'. destruct E' as [k ->]. rewrite pow_1_even. field.
        apply INR_fact_neq_0. }
    rewrite <- Nat.negb_odd. destruct (Nat.odd n); cbn [negb]; ring.
Qed.

Lemma exp_sum (x : R) : Un_cv (fun n => sumn n (term x)) (exp x).
Proof.
  assert (forall n, sumn (S n) (term x) = sum_f_R0 (fun i => / INR (fact i) * x ^ i) n) as H.
  { induction n; [cbn; unfold term; simpl; field|]. cbn [sumn sum_f_R0] in *. rewrite IHn.
    unfold term. f_equal. unfold Rdiv. ring. }
  unfold exp. destruct (exist_exp x) as [l Hl]. simpl.
  intros e He. destruct (Hl e He) as [N HN]. exists (S N). intros [|n] Hn; [lia|].
  rewrite H. apply HN. lia.
Qed.

Theorem bernoulli_exp_frac_distribution (a b : nat) (f : bool -> R) :
  (0 < b)%nat -> (a <= b)%nat ->
  Un_cv (fun fuel => bernoulli_exp_frac law fuel a b 1 f) (coin_distribution a b f).
Proof.
  intros Hb Hab. set (g := INR a / INR b).
  apply cv_ext with (f := fun n => f false * (1 - term g n)
    + (f true - f false) * (sumn n (term (- g)) - (if Nat.odd n then term g n else 0))).
  - intros n. rewrite <- alternating.
    assert (term g 0 = 1) as T0 by (unfold term; simpl; field).
    rewrite <- (Rmult_1_l (bernoulli_exp_frac law n a b 1 f)), <- T0.
    unfold g. rewrite coin_sum by assumption.
    apply sumn_eq. intros i _. cbn [Nat.add]. f_equal. destruct (Nat.odd (S i)); reflexivity.
  - assert (Un_cv (term g) 0) as T by apply cv_speed_pow_fact.
    assert (Un_cv (fun n => if Nat.odd n then term g n else 0) 0) as T'.
    { intros e He. destruct (T e He) as [N HN]. exists N. intros n Hn.
      destruct (Nat.odd n); [apply HN, Hn|]. unfold R_dist. rewrite Rminus_0_r, Rabs_R0. exact He. }
    unfold coin_distribution. fold g.
    replace (exp (- g) * f true + (1 - exp (- g)) * f false)
      with (f false * (1 - 0) + (f true - f false) * (exp (- g) - 0)) by ring.
    apply CV_plus; apply CV_mult; try apply cv_const; apply CV_minus; auto using cv_const, exp_sum.
Qed.

(** * The coin of probability exp (- (q + a / b)) *)
Theorem bernoulli_exp_distribution (q a b : nat) (f : bool -> R) :
  (0 < b)%nat ->
  bernoulli_exp law coin_distribution q a b f
    = exp (- (INR q + INR a / INR b)) * f true + (1 - exp (- (INR q + INR a / INR b))) * f false.
Proof.
  intros Hb. apply lt_0_INR in Hb. revert f. induction q; intros f.
  - cbn -[INR Nat.eqb]. destruct (Nat.eqb_spec a 0) as [->|Ha]; cbn -[INR].
    + simpl INR. replace (- (0 + 0 / INR b)) with 0 by (field; lra). rewrite exp_0. ring.
    + unfold coin_distribution. simpl (INR 0). rewrite Rplus_0_l. reflexivity.
  - cbn -[INR]. unfold coin_distribution at 1. rewrite IHq, (S_INR q). cbn -[INR].
    replace (- (INR q + 1 + INR a / INR b)) with (- (INR 1 / INR 1) + - (INR q + INR a / INR b))
      by (simpl (INR 1); field; lra).
    rewrite exp_plus. ring.
Qed.

(** By quotient and remainder it is the coin of probability exp (- num / den). *)
Lemma coin_of_quotient (num den : nat) (f : bool -> R) :
  (0 < den)%nat ->
  bernoulli_exp law coin_distribution (num / den) (num mod den) den f
    = exp (- (INR num / INR den)) * f true + (1 - exp (- (INR num / INR den))) * f false.
Proof.
  intros Hd. rewrite bernoulli_exp_distribution by exact Hd. apply lt_0_INR in Hd as Rd.
  replace (INR num / INR den) with (INR (num / den) + INR (num mod den) / INR den); [reflexivity|].
  rewrite (Nat.div_mod num den) at 3 by lia. rewrite plus_INR, mult_INR. field. lra.
Qed.
