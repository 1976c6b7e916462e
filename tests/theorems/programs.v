(** The integer algorithms of plugin_cpp/random/samplers.cc and exponential.cc, line by line.

    A program is written once, over any monad with uniform draws. In samplers.v it has a law. In
    [tape] it reads numbers that were drawn already, so that a test can compare it with the code
    (test_programs.py). Each loop has fuel, since Coq has no loops without end. The coin of an inner
    loop is an argument: the theorem about the inner loop says which law it has. *)
Require Import List ZArith Arith.
Import ListNotations.

Record monad := Monad {
  M : Type -> Type;
  ret : forall {A}, A -> M A;
  bind : forall {A B}, M A -> (A -> M B) -> M B;
  uniform : nat -> M nat;  (* on 0, ..., n - 1 *)
  stuck : forall {A}, M A  (* out of fuel *)
}.

Section Programs.
  Variable m : monad.
  Notation "x <- a ;; b" := (bind m a (fun x => b)) (at level 61, a at next level, right associativity).

  (** [UniformUpTo]: a word of [bits + shift] bits, of which the low ones are dropped. *)
  Fixpoint uniform_below (fuel bits shift n : nat) : M m nat :=
    match fuel with
    | 0 => stuck m
    | S fuel =>
        w <- uniform m (2 ^ bits * 2 ^ shift) ;;
        if w / 2 ^ shift <? n then ret m (w / 2 ^ shift) else uniform_below fuel bits shift n
    end.

  (** [BernoulliExpFrac], from its counter k on; [BernoulliExpOne] is a = b = 1. *)
  Fixpoint bernoulli_exp_frac (fuel a b k : nat) : M m bool :=
    match fuel with
    | 0 => stuck m
    | S fuel =>
        x <- uniform m b ;;
        if x <? a then
          y <- uniform m k ;;
          if y =? 0 then bernoulli_exp_frac fuel a b (S k) else ret m (Nat.odd k)
        else ret m (Nat.odd k)
    end.

  Variable coin : nat -> nat -> M m bool.  (* of probability exp (- a / b) *)

  (** [BernoulliExp]. *)
  Fixpoint bernoulli_exp (q a b : nat) : M m bool :=
    match q with
    | 0 => if a =? 0 then ret m true else coin a b
    | S q => c <- coin 1 1 ;; if c then bernoulli_exp q a b else ret m false
    end.

  (** The inner loop of [DiscreteLaplace]; its fuel is [kMaxGeometric], above which the code fails. *)
  Fixpoint geometric (fuel v : nat) : M m nat :=
    match fuel with
    | 0 => stuck m
    | S fuel => c <- coin 1 1 ;; if c then geometric fuel (S v) else ret m v
    end.

  (** [DiscreteLaplace]. *)
  Fixpoint laplace (fuel most t : nat) : M m Z :=
    match fuel with
    | 0 => stuck m
    | S fuel =>
        u <- uniform m t ;;
        c <- coin u t ;;
        if c then
          v <- geometric most 0 ;;
          s <- uniform m 2 ;;
          if s =? 1 then
            if u + t * v =? 0 then laplace fuel most t else ret m (- Z.of_nat (u + t * v))%Z
          else ret m (Z.of_nat (u + t * v))
        else laplace fuel most t
    end.

  (** [DiscreteGaussian], with noise of [DiscreteLaplace] of the scale t = IntegerSqrt + 1. *)
  Definition distance (y : Z) (t sigma2 : nat) : nat :=
    Z.abs_nat (Z.abs y * Z.of_nat t - Z.of_nat sigma2).

  Fixpoint gaussian (fuel : nat) (proposal : M m Z) (t sigma2 : nat) : M m Z :=
    match fuel with
    | 0 => stuck m
    | S fuel =>
        y <- proposal ;;
        c <- bernoulli_exp (distance y t sigma2 * distance y t sigma2 / (2 * sigma2 * t * t))
               ((distance y t sigma2 * distance y t sigma2) mod (2 * sigma2 * t * t))
               (2 * sigma2 * t * t) ;;
        if c then ret m y else gaussian fuel proposal t sigma2
    end.

  (** [SelectExponential], for [missing] c = best - u c. *)
  Fixpoint select (fuel n e D : nat) (missing : nat -> nat) : M m nat :=
    match fuel with
    | 0 => stuck m
    | S fuel =>
        c <- uniform m n ;;
        kept <- bernoulli_exp (missing c * e / D) ((missing c * e) mod D) D ;;
        if kept then ret m c else select fuel n e D missing
    end.
End Programs.

(** Programs that read their draws from a list, and give back what they left of it. *)
Definition tape : monad := {|
  M := fun A => list nat -> option (A * list nat);
  ret := fun A a l => Some (a, l);
  bind := fun A B p k l => match p l with Some (a, rest) => k a rest | None => None end;
  uniform := fun n l =>
    match l with x :: rest => if x <? n then Some (x, rest) else None | [] => None end;
  stuck := fun A l => None
|}.

Definition coin_of_tape (a b : nat) : M tape bool := bernoulli_exp_frac tape 1000 a b 1.
Definition coins (q a b : nat) : M tape bool := bernoulli_exp tape coin_of_tape q a b.
Definition laplace_of_tape (t : nat) : M tape Z := laplace tape coin_of_tape 1000 1000 t.
Definition gaussian_of_tape (sigma2 : nat) : M tape Z :=
  let t := Nat.sqrt sigma2 + 1 in gaussian tape coin_of_tape 1000 (laplace_of_tape t) t sigma2.
Definition select_of_tape (e D : nat) (missing : list nat) : M tape nat :=
  select tape coin_of_tape 1000 (length missing) e D (fun c => nth c missing 0).
