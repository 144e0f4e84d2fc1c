"""PASTA (AAAI 2026): Table 1 as printed, mean and standard deviation over five runs, questions 1 to 6; the
published counts, and the twenty methods by the names that they have here.

The rows of the source are damaged; that the scorers stand in the order CLIP, SigLIP, EVA, BLIP follows from
the text. Nothing can be recomputed: the ratings were not obtained.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLE_1 = """
MSE CLIP   0.990±0.104 0.993±0.096 2.111±2.529 0.811±0.095 1.476±0.183 0.752±0.127
MSE SigLIP 0.989±0.113 1.009±0.125 0.842±0.094 0.840±0.106 1.396±0.177 0.739±0.140
MSE EVA    3.297±1.840 3.287±1.835 5.938±2.542 4.642±3.135 3.005±1.385 10.710±4.943
MSE BLIP   1.666±1.215 1.747±1.174 3.355±3.099 2.097±2.608 1.767±0.568 3.324±5.091
MSE Human  0.415±0.037 0.429±0.049 0.562±0.104 0.478±0.080 0.509±0.102 0.299±0.051
QWK CLIP   0.450±0.066 0.452±0.063 0.199±0.040 0.216±0.052 0.165±0.060 0.159±0.031
QWK SigLIP 0.471±0.055 0.459±0.056 0.237±0.052 0.219±0.035 0.177±0.061 0.165±0.018
QWK EVA    0.328±0.023 0.340±0.020 0.181±0.003 0.173±0.017 0.081±0.081 0.159±0.011
QWK BLIP   0.462±0.050 0.457±0.054 0.160±0.099 0.230±0.018 0.163±0.029 0.185±0.049
QWK Human  0.849±0.013 0.845±0.017 0.731±0.050 0.748±0.041 0.848±0.029 0.796±0.048
SCC CLIP   0.484±0.064 0.484±0.062 0.213±0.040 0.230±0.050 0.197±0.073 0.193±0.030
SCC SigLIP 0.501±0.052 0.490±0.057 0.247±0.048 0.223±0.029 0.213±0.071 0.196±0.020
SCC EVA    0.397±0.036 0.411±0.033 0.207±0.065 0.194±0.014 0.088±0.104 0.218±0.012
SCC BLIP   0.484±0.046 0.474±0.048 0.150±0.155 0.247±0.015 0.216±0.035 0.220±0.057
SCC Human  0.844±0.017 0.839±0.019 0.722±0.045 0.742±0.038 0.850±0.023 0.789±0.039
"""

EXPLANATIONS, RATERS, QUESTIONS = 21_100, 5, 6
RATINGS = 633_000
"""As printed. The text has 21,110 explanations in one place, which gives another product."""
MEAN = 2.8568530805687202
"""Of one question's ratings, a constant in the authors' code."""
SALIENCY = (
    "bcos", "grad_cam", "hires_cam", "grad_cam_elementwise", "grad_cam_plus_plus", "xgrad_cam",
    "ablation_cam", "score_cam", "eigen_cam", "eigen_grad_cam", "full_grad", "deep_feature_factorization",
    "shap_partition", "lime_image",
)  # fmt: skip
CONCEPTS = ("x_nesyl", "clip_linear", "clip_qda", "lime_cbm", "shap_cbm", "rise_cbm")
NETWORKS = ("resnet50", "vit_b_16", "clip")
POSSIBLE = 46
"""Explanations of one picture, of which 21 were rated."""


def printed_means() -> Mapping[tuple[str, str], tuple[float, ...]]:
    """(metric, row) -> the printed means of the six questions."""
    rows = (line.split() for line in TABLE_1.strip().splitlines())
    return {
        (metric, row): tuple(float(cell.partition("\N{PLUS-MINUS SIGN}")[0]) for cell in cells)
        for metric, row, *cells in rows
    }
