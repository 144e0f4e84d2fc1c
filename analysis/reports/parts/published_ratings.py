"""Table 1 of PASTA as published, for the layout and for comparison: nothing of it is recomputed here.

Mean and sd over five runs, questions 1 to 6 [Kazmierczak et al. 2025]. The row labels of our source are
partly damaged; that the encoders stand in this order follows from the text.
"""

from __future__ import annotations

from collections.abc import Mapping

ROWS = ("CLIP", "SigLIP", "EVA", "BLIP", "Human")
WHY_EMPTY = (
    "Own cells stay empty: these rows are of PASTA's ratings and of trained encoders, and what is printed "
    "above is of other ratings."
)
PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "MSE": {
        "CLIP": "0.990±0.104 0.993±0.096 2.111±2.529 0.811±0.095 1.476±0.183 0.752±0.127",
        "SigLIP": "0.989±0.113 1.009±0.125 0.842±0.094 0.840±0.106 1.396±0.177 0.739±0.140",
        "EVA": "3.297±1.840 3.287±1.835 5.938±2.542 4.642±3.135 3.005±1.385 10.710±4.943",
        "BLIP": "1.666±1.215 1.747±1.174 3.355±3.099 2.097±2.608 1.767±0.568 3.324±5.091",
        "Human": "0.415±0.037 0.429±0.049 0.562±0.104 0.478±0.080 0.509±0.102 0.299±0.051",
    },
    "QWK": {
        "CLIP": "0.450±0.066 0.452±0.063 0.199±0.040 0.216±0.052 0.165±0.060 0.159±0.031",
        "SigLIP": "0.471±0.055 0.459±0.056 0.237±0.052 0.219±0.035 0.177±0.061 0.165±0.018",
        "EVA": "0.328±0.023 0.340±0.020 0.181±0.003 0.173±0.017 0.081±0.081 0.159±0.011",
        "BLIP": "0.462±0.050 0.457±0.054 0.160±0.099 0.230±0.018 0.163±0.029 0.185±0.049",
        "Human": "0.849±0.013 0.845±0.017 0.731±0.050 0.748±0.041 0.848±0.029 0.796±0.048",
    },
    "SCC": {
        "CLIP": "0.484±0.064 0.484±0.062 0.213±0.040 0.230±0.050 0.197±0.073 0.193±0.030",
        "SigLIP": "0.501±0.052 0.490±0.057 0.247±0.048 0.223±0.029 0.213±0.071 0.196±0.020",
        "EVA": "0.397±0.036 0.411±0.033 0.207±0.065 0.194±0.014 0.088±0.104 0.218±0.012",
        "BLIP": "0.484±0.046 0.474±0.048 0.150±0.155 0.247±0.015 0.216±0.035 0.220±0.057",
        "Human": "0.844±0.017 0.839±0.019 0.722±0.045 0.742±0.038 0.850±0.023 0.789±0.039",
    },
}
"""Spearman's correlation ("SCC") is of predictions rounded to the points of the scale."""
