"""The page method.md in NumPy: right and wrong answers, a micro average, 20 source models or more.

Slow and short, with the page's symbols and sections. `evaluate` is the entry point.
"""

from types import SimpleNamespace

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components
from scipy.special import logit, logsumexp, softmax
from scipy.stats import hypergeom
from scipy.stats import t as student


def child(seed, *keys):
    """12: a seed that follows from another one."""
    return int(np.random.SeedSequence(seed, spawn_key=keys).generate_state(1)[0] >> 1)


def sigma(x):
    """1, 12: the logistic function."""
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def t(f, L):
    """1: quantile of Student's distribution."""
    return student.ppf((1 + L) / 2, f)


def groups_of(Y, families):
    """12: the group of each source model."""
    with np.errstate(invalid="ignore"):  # a model that is always right correlates with none
        alike = np.corrcoef(Y) >= 0.95
    differ = Y @ (1 - Y.T)
    alike |= (differ + differ.T == 0) | (families[:, None] == families)
    return connected_components(alike)[1]


def order_of(tasks, seed):
    """3, 12: the order in which samples take the items."""
    N, r = len(tasks), np.random.default_rng(child(seed, 7))
    _, first, number = np.unique(tasks, return_index=True, return_inverse=True)
    task = first[number]  # each item's task: the position of its first item
    place = np.argsort(task, kind="stable")
    block = np.concatenate([np.arange((task == k).sum()) // 16 for k in np.unique(task)])
    circle = place[np.lexsort((r.random(N), block, task[place]))]
    steps = (r.random() + np.arange(3 * N) * 0.6180339887498949) % 1
    return circle[list(dict.fromkeys(np.floor(N * steps).astype(int)))]


def draw(m, v, A, count):
    """3: drawn items in their order, and the probabilities of samples of 1, 2, … of them."""
    open_ = m.order[~np.isin(m.order, A)]
    root = m.w * np.sqrt(v)
    x = (0.8 * root / root.mean() + 0.2 * m.w / m.w.mean())[open_]
    x = np.maximum(x, 0.01 * x.mean())
    u = (np.arange(len(x)) + 0.5) / len(x)
    first = np.argsort(-np.log(1 - u) / x, kind="stable")[:count]

    def probabilities(size):
        rate = brentq(lambda rate: (1 - np.exp(-x * rate)).sum() - size, 0, 1e6, xtol=1e-15)
        return (1 - np.exp(-x * rate))[first[:size]]

    return open_[first], probabilities


def joined(Y, z):
    """4: source models joined into at most 101 groups: mean scores, abilities and sizes."""
    S = len(z)
    if S <= 101:
        return Y, z, np.ones(S)
    close = 1e-9 * max(1, np.abs(z).max())
    weaker, equal = z[:, None] - z > close, np.abs(z[:, None] - z) <= close
    r = weaker.sum(1) + equal.sum(1) / 2
    k = np.floor(101 * np.minimum(r, S - r) / S - 1e-9).astype(int)
    group = np.unique(np.where(r <= S / 2, k, 100 - k), return_inverse=True)[1]
    size = np.bincount(group)
    means = np.stack([np.bincount(group, column) for column in np.column_stack([z, Y]).T]) / size
    return means[1:].T, means[0], size


def fit_curves(Y, z):
    """4: parameters b and a of the item curves, and the covariance of both."""
    q = (Y.sum(0) + 0.5) / (len(Y) + 1)
    Y, z, size = joined(Y, z)
    b, a, b_0, a_0, tau = logit(q), np.ones(len(q)), 0, 1, 100
    X = np.stack([np.ones_like(z), z])

    def information():
        c = sigma(b + np.outer(z, a))
        inner = np.einsum("m,mj,km,lm->jkl", size, np.maximum(c * (1 - c), 1e-4), X, X)
        return c, inner + np.diag([1 / tau, 3])

    for again in range(2):
        if again:
            weight = q * (1 - q) / (q * (1 - q)).sum()
            b_0, a_0, tau = weight @ b, weight @ a, max(np.var(b), 0.25) / 0.3
        for _ in range(12):
            c, inner = information()
            slope = (X * size) @ (Y - c) - np.stack([(b - b_0) / tau, 3 * (a - a_0)])
            step = np.clip(np.linalg.solve(inner, slope.T[..., None])[..., 0].T, -2, 2)
            b, a = b + step[0], a + step[1]
            if np.abs(step).max() < 1e-4:
                break
    return b, a, np.linalg.inv(information()[1])


def averaged(b, a, C, g):
    """4: the curves P at abilities g averaged over their uncertainty, and V."""
    V = C[:, 0, 0] + 2 * g[:, None] * C[:, 0, 1] + g[:, None] ** 2 * C[:, 1, 1]
    return np.clip(sigma((b + np.outer(g, a)) / np.sqrt(1 + np.pi / 8 * V)), 0.001, 0.999), V


def weigh_grid(P, answers):
    """4: weights of the grid's nodes given answers, one row of answers for each model."""
    return softmax(answers @ np.log(P).T + (1 - answers) @ np.log(1 - P).T, axis=1)


def learn(Y, families, tasks, n, method, seed):
    """Return all that is known before a target answers, and the items that are chosen by then."""
    S, N = Y.shape
    m = SimpleNamespace(Y=Y, w=np.full(N, 1 / N), s=Y.mean(1), order=order_of(tasks, seed))
    m.groups = groups_of(Y, families)
    m.G = m.groups.max() + 1
    z = np.log((m.s * N + 0.5) / ((1 - m.s) * N + 0.5))  # 4
    m.z = z = (z - z.mean()) / z.std()
    m.b, m.a, m.C = fit_curves(Y, z)
    m.g = np.linspace(z.min() - 4, z.max() + 4, 71)
    m.P = averaged(m.b, m.a, m.C, m.g)[0]
    m.q = (Y.sum(0) + 0.5) / (S + 1)
    m.c = sigma(m.b + np.outer(z, m.a))
    m.U = np.linalg.svd(m.c - m.c.mean(0), full_matrices=False)[0][:, :8]  # 5.1
    p = np.clip(m.c, 0.001, 0.999)  # 5.2
    cut = np.clip(p, 0.03, 0.97)
    r = (Y - p) / np.sqrt(cut * (1 - cut))
    u = np.linalg.svd(r, full_matrices=False)[0][:, : min(48, S - 1)]
    m.Phi = np.sqrt(0.2 / S) * u.T @ r
    zeta = (r**2).mean(0)
    m.psi = 0.8 * np.maximum(zeta, 0.3 * zeta.mean())
    m.eps = m.psi + np.maximum(0.2 * zeta - (m.Phi[:16] ** 2).sum(0), 0)
    m.d = (m.b - m.b.mean()) / (m.b.std() + 1e-9)
    m.n, m.method, m.is_static = n, method, method == "fewbench-static"
    none, equal = np.array([], int), np.full(S, 1 / S)
    if m.is_static:  # 3
        m.A = choose(m, equal, (0.5, 0.25, 0.25), none, round(n / 3))
        near = (m.g >= z.min() - 2) & (m.g <= z.max() + 2)
        m.drawn, m.pi = draw(m, (m.P * (1 - m.P))[near].mean(0), m.A, n - len(m.A))
    else:
        m.A, m.drawn, m.pi = choose(m, equal, (1, 0, 0), none, min(n, 5)), none, None
    return m


def spread(P):
    """5.2: the variance v of an answer."""
    cut = np.clip(P, 0.03, 0.97)
    return cut * (1 - cut)


def resemble(m, A, y):
    """5.1: weights lambda of the source models, given the answers."""
    S, Y = len(m.Y), m.Y[:, A]
    if len(A) == 0:
        return np.full(S, 1 / S)
    H = S / (S - 1) * (2 * Y.mean(0) * (1 - Y.mean(0))).mean()
    return softmax(-np.abs(Y - y).mean(1) / (0.15 * np.sqrt(S / m.G) * (H + 1e-9)))


def noise_inside(m, lam):
    """5.1: D, of right and wrong answers."""
    return 0.5 * lam @ (m.c * (1 - m.c)) + 0.02 * m.q * (1 - m.q)


def inside(m, lam):
    """5.1, 12: the Gaussian model of answers and score with weights lambda."""
    mu, mu_theta = (lam @ m.Y).astype("f4"), lam @ m.s
    top = np.argsort(-np.round(lam / lam.max(), 9), kind="stable")
    top = top[: max(2, np.searchsorted(np.cumsum(lam[top]), 0.9999) + 1)]
    root = np.sqrt(lam[top] / 2)
    rows = root.astype("f4")[:, None] * (m.Y[top].astype("f4") - mu)
    Uc = m.U.T @ (m.c - m.c.mean(0))
    T = np.linalg.qr(np.sqrt(lam / 2)[:, None] * (m.U - lam @ m.U))[1]
    T = np.linalg.svd(T @ Uc, full_matrices=False)[0].T @ T
    F = np.vstack([rows, (T @ Uc).astype("f4")]).astype(float)
    f = np.concatenate([root * (m.s[top] - mu_theta), T @ Uc @ m.w])
    D_theta = m.w**2 @ noise_inside(m, np.full(len(lam), 1 / len(lam)))
    return SimpleNamespace(
        mu=mu.astype(float), mu_theta=mu_theta, F=F, D=noise_inside(m, lam), f=f, D_theta=D_theta
    )


def predict_inside(m, A, y):
    """5.1: the estimate by the model inside, and its variance."""
    i = inside(m, resemble(m, A, y))
    K = i.F[:, A].T @ i.F[:, A] + np.diag(i.D[A])
    k = i.F[:, A].T @ i.f + i.D[A] * m.w[A]
    V = i.f @ i.f + i.D_theta - k @ np.linalg.solve(K, k)
    return i.mu_theta + k @ np.linalg.solve(K, y - i.mu[A]), max(V, 1e-10)


def log_score(y, ahead):
    """5.2: the log score of answers predicted ahead."""
    p = np.clip(ahead, 0.02, 0.98)
    return (y * np.log(p) + (1 - y) * np.log(1 - p)).sum(-1)


def score_inside(m, A, y, rounds):
    """5.3: the log score of the answers by the model inside; `rounds` are numbers of answers."""
    total = 0
    for start, end in zip([0, *rounds], rounds, strict=False):
        i = inside(m, resemble(m, A[:start], y[:start]))
        B = A[:end]
        L = np.linalg.cholesky(i.F[:, B].T @ i.F[:, B] + np.diag(i.D[B]))
        ahead = y[:end] - np.diag(L) * np.linalg.solve(L, y[:end] - i.mu[B])
        total += log_score(y[start:end], ahead[start:])
    return total


def outside(m, A, y):
    """5.2: at each node the log-likelihood, the log score, and the mean and variance of theta."""
    P, v, rest = m.P, spread(m.P), np.where(np.isin(np.arange(len(m.w)), A), 0, m.w)
    flat = (P * (1 - P))[..., None]
    Lam = np.concatenate([np.sqrt(v)[..., None] * m.Phi[:16].T, flat, flat * m.d[:, None]], axis=2)
    noise = v[:, A] * (m.eps[A] + 1e-4)
    Lam_A, Lam_rest = Lam[:, A], np.einsum("gjk,j->gk", Lam, rest)
    L = np.linalg.cholesky(Lam_A @ Lam_A.transpose(0, 2, 1) + np.eye(len(A)) * noise[:, None])
    e = np.linalg.solve(L, (y - P[:, A])[..., None])[..., 0]
    diagonal = np.diagonal(L, axis1=1, axis2=2)
    ell = -(e**2).sum(1) / 2 - np.log(diagonal).sum(1)
    scaled = Lam_A.transpose(0, 2, 1) / noise[:, None]
    Xi = np.linalg.inv(np.eye(Lam.shape[2]) + scaled @ Lam_A)
    x = (Xi @ (scaled @ (y - P[:, A])[..., None]))[..., 0]
    mean = m.w[A] @ y + P @ rest + (Lam_rest * x).sum(1)
    own = (v * m.eps) @ m.w**2 - noise @ m.w[A] ** 2
    variance = np.einsum("gk,gkl,gl->g", Lam_rest, Xi, Lam_rest) + np.maximum(own, 0)
    return ell, log_score(y, y - diagonal * e), mean, variance


def mix(m, A, y, rounds):
    """5.3: theta before the clipping, V, and the weights of the models inside, below and above."""
    theta_in, V_in = predict_inside(m, A, y)
    ell, kappa, mean, variance = outside(m, A, y)
    gamma = softmax(ell)
    theta_out = gamma @ mean
    V_out = max(gamma @ (mean**2 + variance) - theta_out**2, 0)
    three = mean + np.sqrt(3 * variance) * np.array([[-1], [0], [1]])
    ell_in, o = score_inside(m, A, y, rounds), [0]
    for sign, level in ((-1, 0.05), (1, 0.95)):
        beyond = sign * three > sign * np.quantile(m.s, level)
        p = softmax(kappa) @ (np.array([1, 4, 1]) / 6 @ beyond)
        nodes = kappa[sign * m.g > sign * np.quantile(m.z, level)]
        ell_end = logsumexp(nodes) - np.log(len(nodes))
        o.append(logit(np.clip(p, 0.01, 0.99)) + ell_end - ell_in + 1)
    weights = softmax(o)
    W = weights[1] + weights[2]
    theta = (1 - W) * theta_in + W * theta_out
    V = (1 - W) * V_in + W * V_out + W * (1 - W) * (theta_out - theta_in) ** 2
    return theta, V, weights


def models_of_end(m, end):
    """6: the five Gaussian models below (end -1) or above (end 1)."""
    last = m.z.min() - 3.5 if end < 0 else m.z.max() + 3.5
    for g in np.linspace(np.median(m.z), last, 5):
        P = averaged(m.b, m.a, m.C, np.array([g]))[0][0]
        v, flat = spread(P), P * (1 - P)
        F = np.vstack([np.sqrt(v) * m.Phi, flat, flat * m.d, flat * m.a])
        F = F.astype("f4").astype(float)
        D = v * m.psi
        yield SimpleNamespace(F=F, D=D, f=F @ m.w, D_theta=m.w**2 @ D)


def gains(i, w, B):
    """6: the share of the remaining variance that each item takes, given the items B."""
    L = np.linalg.cholesky(i.F[:, B].T @ i.F[:, B] + np.diag(i.D[B] + 1e-9))
    k = i.F.T @ i.f + i.D * w
    X, x = np.linalg.solve(L, i.F[:, B].T @ i.F), np.linalg.solve(L, k[B])
    variance = np.maximum((i.F**2).sum(0) + i.D - (X**2).sum(0), 1e-9)
    return (k - x @ X) ** 2 / variance / (i.f @ i.f + i.D_theta - x @ x)


def choose(m, lam, weights, A, count):
    """6, 12: the items A and the next ones; weights of the models inside, below and above."""
    models = [(weights[0], inside(m, lam))]
    for weight, end in zip(weights[1:], (-1, 1), strict=True):
        models += [(weight / 5, i) for i in models_of_end(m, end) if weight]
    for _ in range(count):
        delta = sum(weight * gains(i, m.w, A) for weight, i in models)
        delta[A] = -1
        A = np.append(A, np.flatnonzero(delta >= delta.max() * (1 - 1e-9))[0])
    return A


def check(m, curves, Y, y):
    """7, 9.2: p_fit, p_new, whether a target is far, and p_far, by curves of the items A alone."""
    S, answers = len(Y), np.vstack([Y, y])
    P = averaged(*curves, m.g)[0]
    omega = weigh_grid(P, answers)
    low, high = np.quantile(m.z, [0.05, 0.95])
    ability = omega[-1] @ m.g
    V, c = averaged(*curves, m.z)[1], sigma(curves[0] + np.outer(m.z, curves[1]))
    pull = V * (Y - c) / np.maximum(1 - V * c * (1 - c), 0.2)
    p = np.clip(sigma(logit(omega @ P) - np.vstack([pull, 0 * y])), 0.02, 0.98)
    fit = ((answers - p) * logit(p)).sum(1) / np.sqrt((p * (1 - p) * logit(p) ** 2).sum(1) + 1e-9)
    some = np.vstack([Y[:: -(-S // 500)], y])
    distance = np.abs(some[:, None] - some[:-1]).sum(2)
    np.fill_diagonal(distance, np.inf)
    D = np.sort(distance)[:, :3].sum(1)
    p_fit = (1 + (fit[:-1] <= fit[-1] + 1e-9).sum()) / (S + 1)
    p_new = (1 + (D[:-1] >= D[-1] - 1e-9).sum()) / len(D)
    is_far = ability >= high + 2 or ability <= low - 2
    return p_fit, p_new, is_far, omega[-1][(m.g < low) | (m.g > high)].sum()


def estimate_sample(m, A, y, n_C, pi, theta, G):
    """8: the estimate from the items drawn after the first n_C ones, V_B and f_B."""
    omega = weigh_grid(m.P[:, A], y[None])[0]
    P, nu = omega @ m.P, omega @ (m.P * (1 - m.P))
    B, y_B, n_B, N = A[n_C:], y[n_C:], len(A) - n_C, len(m.w)
    rest = np.where(np.isin(np.arange(N), A[:n_C]), 0, m.w)
    R, a, is_same = rest.sum(), m.w[B] / pi / (m.w[B] / pi).sum(), y.min() == y.max()
    eta, P_, y_ = (n_B * a) ** 2, P[B] - a @ P[B], y_B - a @ y_B
    phi = 6 * max(np.var(P), 1e-4)
    chi = 0 if is_same else np.clip((eta @ (P_ * y_) + phi) / (eta @ P_**2 + phi), 0, 1.2)
    sample = m.w[A[:n_C]] @ y[:n_C] + chi * rest @ P + R * a @ (y_B - chi * P[B])
    V = eta @ (y_ - chi * P_) ** 2 + 4 / n_B * eta @ nu[B]
    V *= R**2 * (1 - n_B / N) / (n_B * (n_B + 3))
    stein = 1 - V / max((theta - sample) ** 2, 1e-12)
    q_B = 1 if is_same else max(0.5, 10 / (10 + G), stein)
    return theta + q_B * (sample - theta), V, n_B - 1


def run(m, ask, G):
    """2, 3, 7, 8: ask m.n items; return the estimates that count, the last one for all answers."""
    n, doubled = m.n, 5 * 2 ** np.arange(9)
    rounds = [n] if m.is_static else [*doubled[doubled < n], n]
    A, drawn, pi, n_C = m.A, m.drawn, m.pi, len(m.A) if m.is_static else n
    y, weights, failed, found = np.array([]), (1, 0, 0), False, []
    for k, end in enumerate(rounds, 1):
        if len(A) < min(end, n_C):
            A = choose(m, resemble(m, A, y), weights, A, end - len(A))
        A = np.append(A, drawn[len(A) - n_C : end - n_C])
        y = np.append(y, ask(A[len(y) :]))
        theta, V, weights = mix(m, A, y, rounds[:k])
        weights = weights if weights[1] + weights[2] >= 0.15 else (1, 0, 0)
        if m.is_static or (end >= 10 and not failed):
            p_fit, p_new, is_far, _ = check(m, (m.b[A], m.a[A], m.C[A]), m.Y[:, A], y)
            is_far = is_far and (end >= 40 or n - end >= 60)
            failed = is_far or min(p_fit, p_new) <= 0.05
            if failed and not m.is_static:
                n_C, omega = end, weigh_grid(m.P[:, A], y[None])[0]
                drawn, pi = draw(m, omega @ (m.P * (1 - m.P)), A, n - n_C)
        if end < min(10, n):
            continue
        e = SimpleNamespace(V=V, y=y, A=A, sample=None)
        if failed and end - n_C >= 0.4 * end:
            theta, *e.sample = estimate_sample(m, A, y, n_C, pi(end - n_C), theta, G)
        e.low, e.high = m.w[A] @ y, m.w[A] @ y + 1 - m.w[A].sum()
        e.theta = np.clip(theta, e.low, e.high)
        found.append(e)
    return found


def exact(x, n, N, L):
    """9.1: the exact interval for x right answers of n."""
    K = np.arange(x, N - n + x + 1)
    pr = hypergeom.pmf(np.arange(n + 1), N, K[:, None], n)
    K = K[(pr[:, x:].sum(1) > (1 - L) / 2) & (pr[:, : x + 1].sum(1) > (1 - L) / 2)]
    return np.array([K[0], K[-1]]) / N


def random_half_width(e, N, L):
    """9.1: h_0, the half width of as many random items."""
    n, right = len(e.A), round(len(e.A) * e.theta, 9)
    nearest = {int(np.floor(right + 0.5)), int(np.ceil(right - 0.5))}
    moved = np.array([exact(x, n, N, L) + e.theta - x / n for x in nearest])
    low, high = moved[:, 0].min(), moved[:, 1].max()
    if low < 0 or high > 1:
        x = int(np.floor(right))
        lower, upper = exact(x, n, N, L), exact(min(x + 1, n), n, N, L)
        further = lower + (right - x) * (upper - lower)
        low, high = min(low, further[0]), max(high, further[1])
    low, high = max(low, 0), min(high, 1)
    return max(e.e_0 * t(max(n - 1, 1), L), (high - low) / 2)


def measure(m, e):
    """9.1, 9.2, 9.3: add e_0, how the target resembles the source models, and the unit u."""
    n, N, Y = len(e.A), len(m.w), m.Y[:, e.A]
    p = (n * e.theta + 1) / (n + 2)
    e.e_0 = np.sqrt(p * (1 - p) * (1 / n - 1 / N))
    p_fit, p_new, e.is_far, e.p_far = check(m, fit_curves(Y, m.z), Y, e.y)
    e.p = np.sqrt(p_fit * p_new)
    e.u = np.sqrt(np.sqrt(e.V) * e.e_0) * max(e.p, 0.005) ** -0.35


def fifths(groups, seed):
    """9.3, 12: the fifth of each source model."""
    size = np.bincount(groups)
    order = np.random.default_rng(child(seed, 0)).permutation(len(size))
    fifth, models = np.zeros(len(size), int), np.zeros(5)
    for k in order[np.argsort(-size[order], kind="stable")]:
        fifth[k] = models.argmin()
        models[fifth[k]] += size[k]
    return fifth[groups]


def hold_out(m, families, tasks, seed):
    """9.3: for each estimate of a held-out source model the model, error, unit, and answers."""
    S, N = m.Y.shape
    measured = np.random.default_rng(child(seed, 2)).permutation(S)[: S if m.is_static else 60]
    seeds = [seed, child(seed, 3, 1), child(seed, 3, 2)]
    rows = []
    for s in seeds if m.is_static and S * N <= 250_000 else [seed]:
        fifth = fifths(m.groups, s)
        for k in range(5):
            rest = fifth != k
            others = learn(m.Y[rest], families[rest], tasks, m.n, m.method, child(s, 1, k))
            for held in np.intersect1d(measured, np.flatnonzero(~rest)):
                for e in run(others, m.Y[held].__getitem__, m.G):
                    measure(others, e)
                    unit = np.nan if e.sample else e.u
                    rows.append((held, m.s[held] - e.theta, unit, len(e.A)))
    held, error, unit, answers = np.array(rows).T
    error, unit = error.astype("f4").astype(float), unit.astype("f4").astype(float)
    return held.astype(int), error, unit, answers


def error_quantile(x, groups, L):
    """9.3: Q of errors in their units, with the groups that they belong to."""
    _, group, count = np.unique(groups, return_inverse=True, return_counts=True)
    G, a = len(count), 1 / len(count) / count[group]

    def fitted(nu):
        var = a @ x**2
        for _ in range(50):
            var = a @ (x**2 * (nu + 1) / (nu + x**2 / var))
        return a @ student.logpdf(x, nu, scale=np.sqrt(var)), nu, var

    _, nu, var = max(fitted(nu) for nu in (3, 4, 6, 10, 30))
    order = np.argsort(np.abs(x), kind="stable")
    if L > G / (G + 1):
        Q_c = np.abs(x).max() * t(nu, L) / t(nu, G / (G + 1))
    else:
        reached = np.cumsum(a[order]) >= L * (G + 1) / G - 1e-12
        Q_c = np.abs(x)[order][reached.argmax()]
    Q_t = np.sqrt(var) * t(nu, L) * np.sqrt(1 + 1 / G) * (1 + 1 / G)
    return Q_c ** (G / (G + 40)) * Q_t ** (40 / (G + 40))


def is_clearly_above(error, s, groups, n, N):
    """9.3: whether held-out errors after n answers are clearly above random sampling's."""
    pr = hypergeom.pmf(np.arange(n + 1), N, np.rint(N * s)[:, None], n)
    expected = (pr * np.abs(np.arange(n + 1) / n - s[:, None])).sum(1)
    group = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(group, np.abs(error) - expected) / np.bincount(group)
    G = len(means)
    return means.mean() > means.std(ddof=1) / np.sqrt(G) * student.ppf(0.95, G - 1)


def interval(m, e, held_out, L):
    """9: the interval of an estimate, by the errors of held-out source models."""
    n, N = len(e.A), len(m.w)
    if e.sample:  # 9.4
        V, f = e.sample
        n_e, theta = e.theta * (1 - e.theta) / V, e.theta
        n_e = n_e if 0.05 < theta < 0.95 else max(n_e, f + 1)
        q = t(f, L)
        root = q * np.sqrt(theta * (1 - theta) / n_e + q**2 / (4 * n_e**2))
        low, high = (theta + q**2 / (2 * n_e) + np.array([-root, root])) / (1 + q**2 / n_e)
    else:  # 9.3
        measure(m, e)
        held, error, unit, answers = held_out
        has, last = ~np.isnan(unit), answers == n
        h = error_quantile((error / unit)[has], m.groups[held[has]], L) * e.u
        h_0 = random_half_width(e, N, L)
        above = is_clearly_above(error[last], m.s[held[last]], m.groups[held[last]], n, N)
        if np.sqrt(e.V) <= e.e_0 and not above:
            h = min(h if m.is_static else 0.7 * np.sqrt(h * h_0), h_0)
        r_0 = 2 / 3 * e.p_far
        if not e.is_far and e.p <= 0.1:
            r_0 = max(r_0, np.interp(e.p, [0, 0.02, 0.1], [1, 1, 0.8]))
        h = max(h, r_0 * h_0)
        low, high = e.theta - h, e.theta + h
    if e.y.min() == e.y.max():
        ends = exact(int(e.y.sum()), n, N, L)
        low, high = min(low, ends[0]), max(high, ends[1])
    return max(min(low, e.theta), e.low), min(max(high, e.theta), e.high)


def evaluate(Y, targets, n, method, *, families=None, tasks=None, seed=0, L=0.9):
    """Estimate full scores from n answers each: estimates, ends of intervals and items asked.

    `Y` has the source models' scores, and each target is a function of items (columns of `Y`) to
    the target's scores on them. `families` and `tasks` are those of source models and items.
    """
    Y = np.asarray(Y, float)
    families = np.arange(len(Y)) if families is None else np.array(families)
    tasks = np.zeros(len(Y.T), int) if tasks is None else np.array(tasks)
    m = learn(Y, families, tasks, n, method, seed)
    held_out = hold_out(m, families, tasks, seed)
    found = [run(m, ask, m.G)[-1] for ask in targets]
    return [(e.theta, *interval(m, e, held_out, L), e.A) for e in found]
