"""The methods of published systems, by system."""

from fewbench_papers.anchor_points.methods import METHODS as ANCHOR_POINTS
from fewbench_papers.benchmark_prediction.methods import METHODS as BENCHMARK_PREDICTION
from fewbench_papers.bento.methods import METHODS as BENTO
from fewbench_papers.collaborative.methods import METHODS as COLLABORATIVE
from fewbench_papers.disco.methods import METHODS as DISCO
from fewbench_papers.fluid.methods import METHODS as FLUID
from fewbench_papers.metabench.methods import METHODS as METABENCH
from fewbench_papers.ssepy.methods import METHODS as SSEPY
from fewbench_papers.tailoredbench.methods import METHODS as TAILOREDBENCH
from fewbench_papers.tinybenchmarks.methods import METHODS as TINYBENCHMARKS

METHODS = {
    "tailoredbench": TAILOREDBENCH,
    "collaborative": COLLABORATIVE,
    "disco": DISCO,
    "bento": BENTO,
    "anchor_points": ANCHOR_POINTS,
    "tinybenchmarks": TINYBENCHMARKS,
    "metabench": METABENCH,
    "fluid": FLUID,
    "ssepy": SSEPY,
    "benchmark_prediction": BENCHMARK_PREDICTION,
}
