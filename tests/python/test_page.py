"""docs/python.md does what it says."""

import pathlib
import re

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/python.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    golden = numpy.load(ROOT / "tests/data/pnnx/net_mlperftiny_resnet8/output_0.npy")
    numpy.testing.assert_allclose(names["scores"], golden, rtol=1e-3, atol=1e-5)
