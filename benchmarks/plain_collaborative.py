"""Two-stage collaborative filtering as a reader of the paper would write it down, item by item.

Slow and short: the tests and bench_collaborative.py hold the method against it. Symbols are the
paper's. Where the paper leaves it open: cosines of zero columns, what is first of equals, and
rounding are as in `fewbench`.
"""

import numpy as np

from fewbench_papers.collaborative.collaborative import NEIGHBOURS


def cosine(a, b):  # type: ignore[no-untyped-def]
    if not a.any() or not b.any():
        return float(not a.any() and not b.any())
    return round(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))), 12)


def v(columns):  # type: ignore[no-untyped-def]
    """Eq. 6, item by item."""
    return np.array(
        [round(float(((x - x.mean()) ** 2).sum() / max(len(x) - 1, 1)), 12) for x in columns.T]
    )


def most_similar_sources(D, d, m, turn):  # type: ignore[no-untyped-def]
    keys = [(-cosine(row, d), round(abs(row - d).sum(), 12), turn[s]) for s, row in enumerate(D)]
    return sorted(range(len(D)), key=lambda s: keys[s])[: m.similar_sources]


def eq7(columns, S, alpha):  # type: ignore[no-untyped-def]
    return np.round(alpha * v(columns) + (1 - alpha) * v(columns[S]), 12)


def select(D, d, size, m, priority, turn):  # type: ignore[no-untyped-def]
    """Stage 1 for one task: positions in the order of the requests; d is the target's truth."""
    steps = [-(-r * size // m.rounds) for r in range(m.rounds + 1)]
    P: list[int] = []
    for r in range(m.rounds):
        importance = v(D)
        if P:
            S = most_similar_sources(D[:, P], d[P], m, turn)
            importance = eq7(D, S, m.alpha)
        unseen = [j for j in range(D.shape[1]) if j not in P]
        unseen.sort(key=lambda j: (-importance[j], priority[j]))
        P += unseen[: steps[r + 1] - steps[r]]
    return P


def transported(st, ns, d_st, binary, printed):  # type: ignore[no-untyped-def]
    """Eq. 9 and D.2; of several optimal plans, the one that takes the items in order."""
    import ot

    cost = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in ns.T] for a in st.T])
    n, m = cost.shape
    g = np.gcd(n, m)
    in_order = np.array([[np.sqrt((j + 1) / n * (k + 1) / m) for k in range(m)] for j in range(n)])
    cost = cost - 1e-8 * (cost.max() or 1.0) * in_order
    plan = ot.emd(np.full(n, float(m // g)), np.full(m, float(n // g)), cost, numItermax=10**9)
    plan = plan / (plan.sum() if printed else plan.sum(axis=0))
    columns, carried = st @ plan, d_st @ plan
    if binary:
        columns = (np.round(columns, 12) >= 0.5).astype(float)
        carried = (np.round(carried, 12) >= 0.5).astype(float)
    return columns, carried


def predict(tasks, truths, chosen, i, m, binary, turn):  # type: ignore[no-untyped-def]
    """Stage 2 for task i: the expected score of each of its items.

    tasks: matrices (sources, items); truths: the target's scores; chosen: stage 1's positions.
    """
    D, d, P = tasks[i], truths[i], chosen[i]
    ns = [j for j in range(D.shape[1]) if j not in P]
    expected = d.copy()
    if not ns:
        return expected
    if P:
        S = most_similar_sources(D[:, P], d[P], m, turn)
    else:
        everything = np.concatenate([t[:, c] for t, c in zip(tasks, chosen, strict=True)], axis=1)
        told = np.concatenate([t[c] for t, c in zip(truths, chosen, strict=True)])
        S = most_similar_sources(everything, told, m, turn)
    selected, answers = D[:, P], d[P]
    if m.transport:
        means = [t.mean(axis=1) for t in tasks]
        likeness = [cosine(means[k], means[i]) for k in range(len(tasks))]
        near = sorted((k for k in range(len(tasks)) if k != i), key=lambda k: -likeness[k])
        near = [k for k in near if likeness[k] >= m.similar_tasks]
        while len(P) + sum(len(chosen[k]) for k in near) > m.most_items and near:
            near.pop()
        near = [i, *near]
        st = np.concatenate([tasks[k][:, chosen[k]] for k in near], axis=1)
        d_st = np.concatenate([truths[k][chosen[k]] for k in near])
        if st.shape[1]:
            columns, carried = transported(st, D[:, ns], d_st, binary, m.printed)
            selected = np.concatenate([selected, columns], axis=1)
            answers = np.concatenate([answers, carried])
    known = eq7(selected, S, m.alpha)
    v_bar = known.mean() if len(known) else 0.0
    importance = eq7(D[:, ns], S, m.alpha)
    rest = []
    for at, j in enumerate(ns):
        if importance[at] < v_bar / m.low_importance:
            expected[j] = D[:, j].mean()  # Eq. 10
        else:
            rest.append(j)
    if not rest or not selected.shape[1]:
        for j in rest:
            expected[j] = D[S, j].mean()
        return expected
    c_bar, theirs = [], []
    for j in rest:
        similarity = np.array([cosine(D[:, j], column) for column in selected.T])
        top = sorted(range(len(similarity)), key=lambda k: (-similarity[k], k))[:NEIGHBOURS]
        c_bar.append(similarity[top].mean())
        theirs.append(float(answers[top].mean()))
    tau_3 = max(m.least_similarity, float(np.quantile(c_bar, m.quantile)))
    for j, similarity, mean in zip(rest, c_bar, theirs, strict=True):
        expected[j] = mean if similarity >= tau_3 - 1e-12 else D[S, j].mean()
    return expected
