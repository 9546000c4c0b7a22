"""Every published method by its name, with its paper's settings and citation.

A new method is one file with its class and one line here.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from fewbench.errors import MethodError
from fewbench.methods.adaptive.collaborative import Collaborative
from fewbench.methods.adaptive.flash_helm import FlashHelm
from fewbench.methods.adaptive.fluid import Fluid
from fewbench.methods.adaptive.tailored import AS_PRINTED, Tailored
from fewbench.methods.base import Method
from fewbench.methods.parts import combine
from fewbench.methods.prediction.ability import Ability
from fewbench.methods.prediction.aipw import AIPW
from fewbench.methods.prediction.anchor_lines import AnchorLines
from fewbench.methods.prediction.assessor import GenericAssessor
from fewbench.methods.prediction.difference import Difference
from fewbench.methods.prediction.features import AnswerFeatures, Signature, SubsetScore
from fewbench.methods.prediction.gp_irt import GPIRT
from fewbench.methods.prediction.imputation import Imputation
from fewbench.methods.prediction.joint_weights import JointWeights
from fewbench.methods.prediction.low_rank import LowRankCompletion
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.prediction.p_irt import PIRT
from fewbench.methods.prediction.reductions import PCA
from fewbench.methods.prediction.regression import Regression
from fewbench.methods.prediction.regressors import Forest, Linear, Neighbours, Ridge
from fewbench.methods.prediction.threshold import Threshold
from fewbench.methods.selection.best_of_random import BestOfRandom
from fewbench.methods.selection.clusters import Clusters
from fewbench.methods.selection.disagreement import JensenShannon, PredictiveDiversity
from fewbench.methods.selection.greedy import Greedy
from fewbench.methods.selection.information import Informative
from fewbench.methods.selection.irt_anchors import IRTAnchors
from fewbench.methods.selection.joint import Joint
from fewbench.methods.selection.lasso_path import LassoPath
from fewbench.methods.selection.medoids import Medoids
from fewbench.methods.selection.random import Random, Stratified
from fewbench.methods.selection.ridge_search import RidgeSearch
from fewbench.methods.selection.semantic import Semantic
from fewbench.methods.selection.sorted_items import SortedItems
from fewbench.methods.selection.strata import Strata
from fewbench.methods.static import StaticMethod
from fewbench.methods.written import split, with_settings


@dataclass(frozen=True)
class Entry:
    """A method of the catalogue: what it is, what it does in a line, whose it is."""

    method: Method
    summary: str
    citation: str


# Methods that ask again when they have seen answers; their settings are written as a part's are.
ADAPTIVE: dict[str, type[Any]] = {
    "tailored": Tailored,
    "collaborative": Collaborative,
    "flash-helm": FlashHelm,
    "fluid": Fluid,
}

SAMPLING = "simple random sampling; any textbook, e.g. Cochran 1977"
ZHANG = "Zhang, Dorner & Hardt 2025, arXiv 2506.07673"
VIVEK = "Vivek et al. 2023, arXiv 2309.08638"
FILTERING = "Two-Stage Collaborative Filtering 2025"
TAILORED = "Yuan et al. 2025, TailoredBench"
POLO = "Polo et al. 2024 (tinyBenchmarks), arXiv 2402.14992"
DISCO = "Rubinstein et al. 2025, DISCO"
SORTING = "Prabhu et al. 2024, arXiv 2402.19472"
SSEPY = "Fogliato et al. 2024, arXiv 2406.07320"
KIPNIS = "Kipnis et al. 2024 (metabench), arXiv 2407.12844"

# The paper measures disagreement among 100 random sources (its M for MMLU).
_pds = PredictiveDiversity(models=100)
_jsd = JensenShannon(models=100)
_pca_forest = Regression(Forest(), Signature(), PCA())
_pca_knn = Regression(Neighbours(), Signature(), PCA())

CATALOGUE: dict[str, Entry] = {
    "random": Entry(StaticMethod(Random(), Mean()), "random items, their mean", SAMPLING),
    "random-stratified": Entry(
        StaticMethod(Stratified(), Mean()), "random items of each task", SAMPLING
    ),
    "random-linear": Entry(
        StaticMethod(Random(), Regression(Linear(), SubsetScore())),
        "random items, a line from their score to the full score",
        ZHANG,
    ),
    "random-ridge": Entry(
        StaticMethod(Random(), Regression(Ridge(), AnswerFeatures())),
        "random items, ridge regression on the answers",
        ZHANG,
    ),
    "anchor-points": Entry(
        StaticMethod(Medoids(standardise=True), Mean()),
        "k-medoids of source scores, cluster-weighted mean",
        VIVEK,
    ),
    "anchor-points-correlation": Entry(
        StaticMethod(Medoids(metric="correlation"), Mean()),
        "k-medoids by the correlation of source scores, cluster-weighted mean",
        VIVEK,
    ),
    "anchor-points-predictor": Entry(
        StaticMethod(Medoids(metric="absolute-correlation"), AnchorLines()),
        "k-medoids by correlation, each other item by a line from its best medoid",
        VIVEK,
    ),
    "kmedoids-ridge": Entry(
        StaticMethod(Medoids(standardise=True), Regression(Ridge(), AnswerFeatures())),
        "anchor points' items, ridge regression on the answers",
        f"items: {VIVEK}; prediction: {ZHANG}",
    ),
    "clustering": Entry(
        StaticMethod(Clusters(), Mean()),
        "k-means of source scores in each task, cluster-weighted mean",
        f"{FILTERING}, Eq. 5",
    ),
    "clustering-semantic": Entry(
        StaticMethod(Semantic(), Mean()),
        "k-means of the items' embedded texts in each task, cluster-weighted mean",
        f"{FILTERING}, Eq. 5",
    ),
    "aipw": Entry(
        StaticMethod(Random(), AIPW()),
        "random items, the others predicted for each target by ridge over items, corrected",
        ZHANG,
    ),
    "pca": Entry(
        StaticMethod(Random(), Imputation()),
        "random items, the others imputed by the sources' principal components",
        ZHANG,
    ),
    "lasso": Entry(
        StaticMethod(LassoPath(), Regression(Ridge(), AnswerFeatures())),
        "items that the lasso keeps, ridge regression on the answers",
        ZHANG,
    ),
    "double-optimize": Entry(
        StaticMethod(Joint(), JointWeights()),
        "items and weights optimised together by gradient steps, weighted sum",
        ZHANG,
    ),
    "greedy-ridge": Entry(
        StaticMethod(Greedy(), Regression(Ridge(), AnswerFeatures())),
        "items one by one for ridge regression to the full score, ridge regression",
        "forward selection: Chen, Billings & Luo 1989; prediction: Zhang et al. 2025",
    ),
    "random-low-rank": Entry(
        StaticMethod(Random(), LowRankCompletion()),
        "random items, low-rank completion of the others",
        "Tipping & Bishop 1999; completion as in UCBE-LRF, Zhou et al. 2025",
    ),
    "anchor-irt": Entry(
        StaticMethod(IRTAnchors(), Mean()),
        "k-means of item response parameters, cluster-weighted mean",
        POLO,
    ),
    "p-irt": Entry(
        StaticMethod(IRTAnchors(), PIRT()),
        "the same items; what the item response model expects of the others",
        POLO,
    ),
    "gp-irt-anchor": Entry(
        StaticMethod(IRTAnchors(), GPIRT()), "the same items; anchor-irt and p-irt weighed", POLO
    ),
    "gp-irt-random": Entry(
        StaticMethod(Random(), GPIRT()), "random items; their mean and p-irt weighed", POLO
    ),
    "metabench": Entry(
        StaticMethod(Informative(), Ability()),
        "informative items of the best random subset; splines in ability and subset score",
        KIPNIS,
    ),
    "metabench-unfiltered": Entry(
        StaticMethod(BestOfRandom(), Ability()),
        "best random subset for held-out sources; splines in ability and subset score",
        f"{KIPNIS}; so in {DISCO}, Table 1",
    ),
    "best-for-validation": Entry(
        StaticMethod(BestOfRandom(), Ability(uses="score")),
        "best random subset for held-out sources; a spline in its score",
        f"{KIPNIS}, cross-validated subsampling",
    ),
    "random-search-ridge": Entry(
        StaticMethod(RidgeSearch(), Regression(Ridge(), AnswerFeatures())),
        "best random subset for ridge regression on the answers, and that",
        f"{ZHANG}, Random-Search-Learn",
    ),
    "sort-and-search": Entry(
        StaticMethod(SortedItems(), Threshold(keep=False)),
        "items at equal steps of difficulty; right before a threshold, wrong after",
        SORTING,
    ),
    "sort-and-search-weighted": Entry(
        StaticMethod(SortedItems(), Mean()), "the same items, their weighted mean", SORTING
    ),
    "ssepy": Entry(
        StaticMethod(Strata(), Mean()),
        "random items of strata of like difficulty, Horvitz-Thompson",
        SSEPY,
    ),
    "ssepy-neyman": Entry(
        StaticMethod(Strata(allocation="neyman"), Mean()),
        "the same, more items where right and wrong are as likely",
        SSEPY,
    ),
    "ssepy-difference": Entry(
        StaticMethod(Strata(), Difference()),
        "the items of ssepy, difference estimator over the sources' mean",
        SSEPY,
    ),
    "flash-helm": Entry(
        FlashHelm(),
        "few random items, more the higher a model ranks on them; their mean",
        "Perlitz et al. 2024, arXiv 2308.11696",
    ),
    "assessor": Entry(
        StaticMethod(Random(), GenericAssessor()),
        "random items, logistic regression over all pairs predicts the others",
        "Pacchiardi et al. 2024, arXiv 2409.03563",
    ),
    "fluid": Entry(
        Fluid(),
        "items of most Fisher information at the ability found so far; expected scores",
        "Hofmann et al. 2025, arXiv 2509.11106",
    ),
    "collaborative": Entry(
        Collaborative(),
        "items in rounds by importance to like sources; optimal transport between tasks",
        FILTERING,
    ),
    "collaborative-no-transport": Entry(
        Collaborative(transport=False), "the same within each task", FILTERING
    ),
    "low-rank": Entry(
        Collaborative(prediction="low-rank"),
        "items as collaborative chooses them, low-rank completion of the others",
        f"{FILTERING}, Table 5; UCBE-LRF, Zhou et al. 2025",
    ),
    "tailored": Entry(
        Tailored(),
        "items by the sources that answer as the target does; calibrated clusters",
        TAILORED,
    ),
    "tailored-as-printed": Entry(
        AS_PRINTED, "the same by the paper's equations, not its program", TAILORED
    ),
    "disco-pds-rf": Entry(
        StaticMethod(_pds, _pca_forest),
        "items of highest PDS, random forest on the signature",
        DISCO,
    ),
    "disco-pds-knn": Entry(
        StaticMethod(_pds, _pca_knn),
        "items of highest PDS, nearest source by signature",
        DISCO,
    ),
    "disco-jsd-rf": Entry(
        StaticMethod(_jsd, _pca_forest),
        "items of highest JSD, random forest on the signature",
        DISCO,
    ),
    "disco-jsd-knn": Entry(
        StaticMethod(_jsd, _pca_knn),
        "items of highest JSD, nearest source by signature",
        DISCO,
    ),
    "disco-jsd-ridge": Entry(
        StaticMethod(_jsd, Regression(Ridge(alpha=10.0), Signature(), PCA())),
        "items of highest JSD, ridge regression on the signature",
        DISCO,
    ),
    "random-signature-rf": Entry(
        StaticMethod(Random(), _pca_forest), "random items, random forest on the signature", DISCO
    ),
    "random-signature-knn": Entry(
        StaticMethod(Random(), _pca_knn), "random items, nearest source by signature", DISCO
    ),
}


def find_method(text: str) -> Method:
    """Return the method of a catalogue name, or the combination that is written out.

    Raises
    ------
    MethodError
        If a name or setting is unknown, or parts are out of order.

    Examples
    --------
    >>> find_method("random-ridge").describe()
    'random+answers+ridge'
    >>> find_method("jsd(models=50)+pca+ridge(alpha=1)").describe()
    'jsd(models=50)+signature+pca+ridge(alpha=1.0)'
    """
    name = text.strip()
    if name in CATALOGUE:
        return CATALOGUE[name].method
    pieces = split(name)
    if len(pieces) == 1 and pieces[0].name in ADAPTIVE:
        adaptive = ADAPTIVE[pieces[0].name]
        return cast(Method, with_settings(adaptive, pieces[0].settings, pieces[0].name))
    if len(pieces) == 1 and pieces[0].name in CATALOGUE:
        known = CATALOGUE[pieces[0].name].method.describe()
        raise MethodError(
            f"{pieces[0].name!r} has fixed settings", hint=f"write its parts out: {known}"
        )
    if len(pieces) == 1:
        close = get_close_matches(name, CATALOGUE, n=1)
        raise MethodError(
            f"unknown method {text!r}",
            hint=(f"did you mean {close[0]}? " if close else "")
            + "fewbench methods lists them; or write parts, as in random+answers+ridge",
        )
    whole = [piece.name for piece in pieces if piece.name in ADAPTIVE]
    if whole:
        raise MethodError(
            f"{whole[0]} is a whole method, to which no part is joined",
            hint=f"write {whole[0]} by itself, or with settings as in {whole[0]}(name=value)",
        )
    return StaticMethod(*combine(pieces))
