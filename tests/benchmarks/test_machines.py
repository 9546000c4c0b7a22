"""Other kernels of OpenBLAS, as other processors have them, give the same answers."""

import pytest

from fewbench.scores import save_scores
from fewbench.testing import simulate

METHODS = ("fewbench", "clustering", "jsd+signature+pca+forest(trees=8)", "lasso-ridge")


@pytest.mark.slow
def test_two_kernels_give_the_same_items_and_intervals(tmp_path):
    from threadpoolctl import threadpool_info

    from machines import differences, in_process

    if not any(info.get("internal_api") == "openblas" for info in threadpool_info()):
        pytest.skip("NumPy does not use OpenBLAS here: there are no kernels to choose from")
    path = str(save_scores(simulate(24, 40, 3, seed=2), tmp_path / "scores.parquet"))
    first, other = (
        in_process({"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}, [path], METHODS)
        for kernel, threads in (("Haswell", "1"), ("Prescott", "2"))
    )
    if first is None or other is None or first["kernels"] == other["kernels"]:
        pytest.skip("this processor cannot run two kernels of OpenBLAS")
    assert len(first["cells"]) == len(METHODS)
    assert not differences(first, other)
