"""The seventeen programs of CheckDP's example set (Wang, Ding, Kifer & Zhang 2020), restated as plain functions.

`RIGHT` and `WRONG` hold, of each, the adjacency and the claim. All noise is real.
"""

# ruff: noqa: N803

from __future__ import annotations

# --- nine right programs --------------------------------------------------------------------------------------


def c1_noisy_max(q, rng, eps):
    assert eps > 0
    best = 0
    winner = 0
    for i in range(len(q)):
        y = q[i] + rng.laplace(scale=2 / eps)
        if i == 0 or y > best:
            winner = i
            best = y
    return winner


def c2_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    i = 0
    out = []
    while count < N and i < len(q):
        if q[i] + rng.laplace(scale=4 * N / eps) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        i += 1
    return out


def c3_sparse_increasing(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    i = 0
    out = []
    while count < N and i < len(q):
        if q[i] + rng.laplace(scale=2 * N / eps) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        i += 1
    return out


def c4_sparse_decreasing(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=2 * N / eps) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c5_gap_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        v = x + rng.laplace(scale=4 * N / eps)
        if v >= t:
            out.append(v - t)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c6_numeric_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=3 / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=6 * N / eps) >= t:
            out.append(x + rng.laplace(scale=3 * N / eps))
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c7_adaptive_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    spent = 0
    out = []
    for x in q:
        coarse = x + rng.laplace(scale=8 * N / eps)
        if coarse - t >= 16:
            out.append(coarse - t)
            spent += 1
        else:
            fine = x + rng.laplace(scale=4 * N / eps)
            if fine - t >= 0:
                out.append(fine - t)
                spent += 2
            else:
                out.append(None)
        if spent > 2 * N - 2:
            break
    return out


def c8_partial_sum(q, rng, eps):
    assert eps > 0
    s = 0
    for x in q:
        s += x
    return s + rng.laplace(scale=1 / eps)


def c9_smart_sum(q, rng, eps, M, T):
    assert eps > 0
    assert M > 1
    assert T >= 0
    released = 0
    block = 0
    out = []
    for i, x in enumerate(q):
        if i > T:
            break
        if (i + 1) % M == 0:
            released = block + x + rng.laplace(scale=1 / eps)
            block = 0
        else:
            released = released + x + rng.laplace(scale=1 / eps)
            block = block + x
        out.append(released)
    return out


# --- eight wrong programs -------------------------------------------------------------------------------------


def w1_noisy_max_value(q, rng, eps):
    """Returns the noisy value in the place of its index."""
    assert eps > 0
    best = 0
    for i in range(len(q)):
        y = q[i] + rng.laplace(scale=2 / eps)
        if i == 0 or y > best:
            best = y
    return best


def w2_partial_sum_half_noise(q, rng, eps):
    assert eps > 0
    s = 0
    for x in q:
        s += x
    return s + rng.laplace(scale=1 / (2 * eps))


def w3_smart_sum_missing_draw(q, rng, eps, M, T):
    """The draw at the end of a block is missing."""
    assert eps > 0
    assert M > 1
    assert T >= 0
    released = 0
    block = 0
    out = []
    for i, x in enumerate(q):
        if i > T:
            break
        if (i + 1) % M == 0:
            released = block + x
            block = 0
        else:
            released = released + x + rng.laplace(scale=1 / eps)
            block = block + x
        out.append(released)
    return out


def w4_sparse_no_query_noise(q, rng, eps, T):
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        if x >= t:
            out.append(True)
        else:
            out.append(None)
    return out


def w5_sparse_unscaled(q, rng, eps, T):
    """The noise on the answers is not scaled, and there is no cut-off."""
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        if x + rng.laplace(scale=2 / eps) >= t:
            out.append(True)
        else:
            out.append(None)
    return out


def w6_sparse_lee_clifton(q, rng, eps, N, T):
    """Less noise on the answers than on the threshold, whatever the cut-off."""
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=4 / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 / (3 * eps)) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def w7_gap_value(q, rng, eps, N, T):
    """Gives away the noisy answer in the place of the gap."""
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        v = x + rng.laplace(scale=4 * N / eps)
        if v >= t:
            out.append(v)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def w8_adaptive_value(q, rng, eps, N, T):
    """Gives away the coarse noisy answer in the place of its gap."""
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    spent = 0
    out = []
    for x in q:
        coarse = x + rng.laplace(scale=8 * N / eps)
        if coarse - t >= 16:
            out.append(coarse)
            spent += 1
        else:
            fine = x + rng.laplace(scale=4 * N / eps)
            if fine - t >= 0:
                out.append(fine - t)
                spent += 2
            else:
                out.append(None)
        if spent > 2 * N - 2:
            break
    return out


ALL, ONE = "all-differ", "one-differs"

RIGHT = (
    (c1_noisy_max, ALL, "eps"),
    (c2_sparse_vector, ALL, "eps"),
    (c3_sparse_increasing, "up", "eps"),
    (c4_sparse_decreasing, "down", "eps"),
    (c5_gap_sparse_vector, ALL, "eps"),
    (c6_numeric_sparse_vector, ALL, "eps"),
    (c7_adaptive_sparse_vector, ALL, "eps"),
    (c8_partial_sum, ONE, "eps"),
    (c9_smart_sum, ONE, "2*eps"),
)
WRONG = (
    (w1_noisy_max_value, ALL, "eps"),
    (w2_partial_sum_half_noise, ONE, "eps"),
    (w3_smart_sum_missing_draw, ONE, "2*eps"),
    (w4_sparse_no_query_noise, ALL, "eps"),
    (w5_sparse_unscaled, ALL, "eps"),
    (w6_sparse_lee_clifton, ALL, "eps"),
    (w7_gap_value, ALL, "eps"),
    (w8_adaptive_value, ALL, "eps"),
)
