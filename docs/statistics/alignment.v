(* The theorem that a certificate of dpaudit instantiates, in Coq 8.16 with its standard library alone:
   coqc alignment.v

   What is assumed, and stands as a hypothesis of the section: an integral over the draws of one path that is monotone,
   homogeneous and does not change under translation, for functions that are called measurable. The integral of
   Lebesgue is one; the standard library has none to show it of. The page "Randomness alignment" says the same in words. *)

Require Import Reals Lra List Lia.
Import ListNotations.
Open Scope R_scope.

(* ---- the cost of shifting one draw -------------------------------------------------------------------------- *)

Definition laplace (b x : R) : R := exp (- (Rabs x / b)) / (2 * b).

Definition exponential (b x : R) : R := if Rlt_dec x 0 then 0 else exp (- (x / b)) / b.

Lemma div_le : forall b x y, 0 < b -> x <= y -> x / b <= y / b.
Proof.
  intros b x y Hb H. unfold Rdiv. apply Rmult_le_compat_r; [ left; apply Rinv_0_lt_compat | ]; assumption.
Qed.

Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof. intros x y [H | H]; [ left; apply exp_increasing; assumption | subst; apply Rle_refl ]. Qed.

Lemma laplace_positive : forall b x, 0 < b -> 0 < laplace b x.
Proof. intros b x Hb. unfold laplace. apply Rdiv_lt_0_compat; [ apply exp_pos | lra ]. Qed.

Theorem laplace_shifted : forall b x s, 0 < b -> laplace b x <= exp (Rabs s / b) * laplace b (x + s).
Proof.
  intros b x s Hb. unfold laplace.
  replace (exp (Rabs s / b) * (exp (- (Rabs (x + s) / b)) / (2 * b)))
    with (exp (Rabs s / b + - (Rabs (x + s) / b)) / (2 * b)) by (rewrite exp_plus; field; lra).
  apply div_le; [ lra | ]. apply exp_le.
  assert (H : Rabs (x + s) / b <= Rabs x / b + Rabs s / b).
  { replace (Rabs x / b + Rabs s / b) with ((Rabs x + Rabs s) / b) by (field; lra).
    apply div_le; [ assumption | apply Rabs_triang ]. }
  lra.
Qed.

Theorem exponential_shifted : forall b x s, 0 < b -> 0 <= s ->
  exponential b x <= exp (s / b) * exponential b (x + s).
Proof.
  intros b x s Hb Hs. unfold exponential. destruct (Rlt_dec x 0) as [Hx | Hx]; destruct (Rlt_dec (x + s) 0) as [Hy | Hy].
  - lra.
  - apply Rmult_le_pos; [ left; apply exp_pos | left; apply Rdiv_lt_0_compat; [ apply exp_pos | assumption ] ].
  - lra.
  - replace (exp (s / b) * (exp (- ((x + s) / b)) / b)) with (exp (s / b + - ((x + s) / b)) / b)
      by (rewrite exp_plus; field; lra).
    replace (s / b + - ((x + s) / b)) with (- (x / b)) by (field; lra). lra.
Qed.

(* ---- the cost of shifting the draws of a path ---------------------------------------------------------------- *)

(* A draw: its law as a density, its shift, and what the shift costs. *)
Record draw := { density : R -> R; moved : R; cost : R }.

Definition allowed (d : draw) : Prop :=
  (forall x, 0 <= density d x) /\ (forall x, density d x <= exp (cost d) * density d (x + moved d)).

Lemma laplace_allowed : forall b s, 0 < b -> allowed {| density := laplace b; moved := s; cost := Rabs s / b |}.
Proof.
  intros b s Hb. split; intros x; simpl; [ left; apply laplace_positive | apply laplace_shifted ]; assumption.
Qed.

Lemma exponential_allowed : forall b s, 0 < b -> 0 <= s ->
  allowed {| density := exponential b; moved := s; cost := s / b |}.
Proof.
  intros b s Hb Hs. split; intros x; simpl; [ | apply exponential_shifted; assumption ].
  unfold exponential. destruct (Rlt_dec x 0); [ lra | left; apply Rdiv_lt_0_compat; [ apply exp_pos | assumption ] ].
Qed.

(* The draws of a path are independent: their joint density is the product. *)
Fixpoint joint (ds : list draw) (x : list R) : R :=
  match ds, x with
  | d :: ds', v :: x' => density d v * joint ds' x'
  | _, _ => 1
  end.

Fixpoint shifted (ds : list draw) (x : list R) : list R :=
  match ds, x with
  | d :: ds', v :: x' => (v + moved d) :: shifted ds' x'
  | _, _ => x
  end.

Fixpoint total (ds : list draw) : R :=
  match ds with
  | [] => 0
  | d :: ds' => cost d + total ds'
  end.

Lemma joint_nonnegative : forall ds x, Forall allowed ds -> 0 <= joint ds x.
Proof.
  induction ds as [ | d ds IH ]; intros [ | v x ] H; simpl; try lra.
  inversion H as [ | ? ? [Hp _] Ht ]; subst. apply Rmult_le_pos; [ apply Hp | apply IH; assumption ].
Qed.

Theorem joint_shifted : forall ds x, Forall allowed ds -> length x = length ds ->
  joint ds x <= exp (total ds) * joint ds (shifted ds x).
Proof.
  induction ds as [ | d ds IH ]; intros [ | v x ] H Hl; simpl in *; try discriminate.
  - rewrite exp_0. lra.
  - inversion H as [ | ? ? [Hp Hc] Ht ]; subst. rewrite exp_plus.
    replace (exp (cost d) * exp (total ds) * (density d (v + moved d) * joint ds (shifted ds x)))
      with ((exp (cost d) * density d (v + moved d)) * (exp (total ds) * joint ds (shifted ds x))) by ring.
    apply Rmult_le_compat; [ apply Hp | apply joint_nonnegative; assumption | apply Hc | ].
    apply IH; [ assumption | lia ].
Qed.

(* ---- one class of runs: a path in lock-step, an index that is returned in the winner shape -------------------- *)

Section OneClass.

  Variable ds : list draw.
  Hypothesis ds_allowed : Forall allowed ds.

  Definition point : Type := { x : list R | length x = length ds }.

  Lemma shifted_length : forall es x, length (shifted es x) = length x.
  Proof. induction es as [ | e es IH ]; intros [ | v x ]; simpl; [ | | | rewrite IH ]; reflexivity. Qed.

  Definition move (x : point) : point :=
    exist _ (shifted ds (proj1_sig x)) (eq_trans (shifted_length ds (proj1_sig x)) (proj2_sig x)).

  Variable integral : (point -> R) -> R.
  Variable measurable : (point -> R) -> Prop.
  Hypothesis monotone : forall f g, measurable f -> measurable g -> (forall x, f x <= g x) -> integral f <= integral g.
  Hypothesis homogeneous : forall c f, measurable f ->
    measurable (fun x => c * f x) /\ integral (fun x => c * f x) = c * integral f.
  Hypothesis translated : forall f, measurable f ->
    measurable (fun x => f (move x)) /\ integral (fun x => f (move x)) = integral f.

  (* `first x` is 1 where the draws x bring the first run into the class with an output of the set, else 0. *)
  Variables first second : point -> R.
  Definition weight (run : point -> R) (x : point) : R := joint ds (proj1_sig x) * run x.
  Definition probability (run : point -> R) : R := integral (weight run).

  Hypothesis first_measurable : measurable (weight first).
  Hypothesis second_measurable : measurable (weight second).
  Hypothesis second_is_event : forall x, 0 <= second x.
  Hypothesis aligned : forall x, first x <= second (move x).

  Theorem class_bounded : probability first <= exp (total ds) * probability second.
  Proof.
    unfold probability. destruct (translated _ second_measurable) as [Hm Ht].
    destruct (homogeneous (exp (total ds)) _ Hm) as [Hm' Hh]. rewrite <- Ht, <- Hh. apply monotone; [ assumption.. | ].
    intros x. unfold weight. simpl.
    apply Rle_trans with (joint ds (proj1_sig x) * second (move x)).
    - apply Rmult_le_compat_l; [ apply joint_nonnegative; assumption | apply aligned ].
    - rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [ apply second_is_event | ].
      apply joint_shifted; [ assumption | apply (proj2_sig x) ].
  Qed.

End OneClass.

(* ---- all classes: each run of the first program is in one, and no run of the second is in two ------------------ *)

Fixpoint sum (values : list R) : R :=
  match values with
  | [] => 0
  | v :: values' => v + sum values'
  end.

(* Per class: the probability of the first run, of the second, and the cost. *)
Theorem loss_bounded : forall (classes : list (R * R * R)) (c p q : R),
  (forall a b k, In (a, b, k) classes -> 0 <= b /\ a <= exp k * b /\ k <= c) ->
  p = sum (map (fun each => fst (fst each)) classes) ->
  sum (map (fun each => snd (fst each)) classes) <= q ->
  p <= exp c * q.
Proof.
  intros classes c p q H Hp Hq. subst p. apply Rle_trans with (exp c * sum (map (fun each => snd (fst each)) classes)).
  2: { apply Rmult_le_compat_l; [ left; apply exp_pos | assumption ]. }
  clear Hq. induction classes as [ | [[a b] k] classes IH ]; simpl; [ lra | ].
  destruct (H a b k) as [Hb [Ha Hk]]; [ left; reflexivity | ].
  assert (IH' := IH (fun a' b' k' Hin => H a' b' k' (or_intror Hin))).
  assert (exp k * b <= exp c * b) by (apply Rmult_le_compat_r; [ assumption | apply exp_le; assumption ]). lra.
Qed.

(* ---- the cost of a run by a potential -------------------------------------------------------------------------- *)

(* Turns from `phi`, each with its cost and the potential after it, as the obligations say. *)
Fixpoint turns (phi : R) (run : list (R * R)) (end_ : R) : Prop :=
  match run with
  | [] => phi = end_
  | (c, after) :: rest => phi + c <= after /\ turns after rest end_
  end.

Theorem potential_bounds : forall run before phi0 phi last bound,
  before <= phi0 -> turns phi0 run phi -> phi + last <= bound ->
  before + sum (map fst run) + last <= bound.
Proof.
  induction run as [ | [c after] run IH ]; intros before phi0 phi last bound Hb Ht Hl; simpl in *.
  - subst. lra.
  - destruct Ht as [Hc Ht]. assert (H := IH (before + c) after phi last bound ltac:(lra) Ht Hl). lra.
Qed.

(* ---- the lemmas of a certificate ------------------------------------------------------------------------------- *)

(* la_generic: inequalities e >= 0 (or > 0), each taken w >= 0 times, do not add up to a number below 0 (or to 0). *)
Inductive fact := AtLeast (w e : R) | Above (w e : R).

Definition holds (f : fact) : Prop :=
  match f with
  | AtLeast w e => 0 <= w /\ 0 <= e
  | Above w e => 0 < w /\ 0 < e
  end.

Definition value (f : fact) : R := match f with AtLeast w e => w * e | Above w e => w * e end.
Definition strict (f : fact) : Prop := match f with AtLeast _ _ => False | Above _ _ => True end.

Lemma value_sign : forall f, holds f -> 0 <= value f /\ (strict f -> 0 < value f).
Proof.
  intros [w e | w e] [Hw He]; simpl.
  - split; [ apply Rmult_le_pos; assumption | intros [] ].
  - assert (0 < w * e) by (apply Rmult_lt_0_compat; assumption). split; [ lra | intros _; assumption ].
Qed.

Theorem la_generic : forall facts, Forall holds facts ->
  0 <= sum (map value facts) /\ (Exists strict facts -> 0 < sum (map value facts)).
Proof.
  induction facts as [ | f facts IH ]; intros H; simpl.
  - split; [ lra | intros E; inversion E ].
  - inversion H as [ | ? ? Hf Ht ]; subst. destruct (value_sign f Hf) as [Hv Hs]. destruct (IH Ht) as [Hn Hp].
    split; [ lra | intros E; inversion E as [ ? ? Hx | ? ? Hx ]; subst ].
    + assert (H1 := Hs Hx). lra.
    + assert (H1 := Hp Hx). lra.
Qed.

Theorem la_mult_pos : forall m l r, 0 < m -> (r <= l -> m * r <= m * l) /\ (r < l -> m * r < m * l).
Proof. intros m l r Hm. split; intros H; [ apply Rmult_le_compat_l | apply Rmult_lt_compat_l ]; lra. Qed.

(* A whole number above r is at least the next one: `up r` is the only one in (r, r + 1]. *)
Theorem whole_limit : forall (n : Z) (r : R), r < IZR n -> IZR (up r) <= IZR n.
Proof.
  intros n r H. apply IZR_le. destruct (archimed r) as [_ Hu].
  assert (IZR (up r) < IZR (n + 1)) by (rewrite plus_IZR; lra). apply lt_IZR in H0. lia.
Qed.

(* ---- the branches of an obligation ----------------------------------------------------------------------------- *)

Section Branches.

  Variable state : Type.

  Inductive formula := Says (p : state -> Prop) | Both (f g : formula) | Either (f g : formula).

  Fixpoint meets (s : state) (f : formula) : Prop :=
    match f with
    | Says p => p s
    | Both f g => meets s f /\ meets s g
    | Either f g => meets s f \/ meets s g
    end.

  Inductive contradictory : list formula -> Prop :=
  | clash : forall p q fs, In (Says p) fs -> In (Says q) fs -> (forall s, p s -> q s -> False) -> contradictory fs
  | both : forall f g fs, In (Both f g) fs -> contradictory (f :: g :: fs) -> contradictory fs
  | either : forall f g fs, In (Either f g) fs ->
      contradictory (f :: fs) -> contradictory (g :: fs) -> contradictory fs
  | lemma : forall f fs, (forall s, meets s f) -> contradictory (f :: fs) -> contradictory fs.

  Theorem contradictory_unmet : forall fs, contradictory fs -> forall s, ~ Forall (meets s) fs.
  Proof.
    induction 1 as [ p q fs Hp Hq Hno | f g fs Hin H IH | f g fs Hin H1 IH1 H2 IH2 | f fs Hall H IH ]; intros s Hs;
      assert (Hs' := proj1 (Forall_forall _ _) Hs).
    - exact (Hno s (Hs' _ Hp) (Hs' _ Hq)).
    - destruct (Hs' _ Hin). apply (IH s). repeat constructor; assumption.
    - destruct (Hs' _ Hin); [ apply (IH1 s) | apply (IH2 s) ]; constructor; assumption.
    - apply (IH s). constructor; [ apply Hall | assumption ].
  Qed.

End Branches.

Print Assumptions class_bounded.
Print Assumptions loss_bounded.
Print Assumptions potential_bounds.
Print Assumptions la_generic.
Print Assumptions contradictory_unmet.
