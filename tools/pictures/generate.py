"""Samples of the regions of a DCGAN and what they have in common: two sections of the page of `flipopt generate`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.report.audit.writing import write_contents
from flipopt.report.generator import study
from flipopt.report.generator.writing import contents

MODEL = Path(__file__).parents[2] / "models" / "generators" / "dcgan-mnist.generator.onnx"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
QUERY, SIZE, SHOWN = 7, "1150,1900", ("samples", "common")


def draw(path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("chromium: expected on the path, found none")
    began = time.perf_counter()
    G, shipped = fo.generative.Generator(MODEL), fo.load_shipped("mnist-fcn")
    z0 = np.random.default_rng(QUERY).standard_normal(G.n_latent)
    found = study(G, z0, classifier=shipped.network, class_names=shipped.classes, progress=True)
    whole = contents(found, f"{MODEL.name}, query {QUERY}")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        some = tuple(section for section in whole.sections if section.name in SHOWN)
        write_contents(page, "page.html", replace(whole, sections=some), began)
        shown = (f"--window-size={SIZE}", "--hide-scrollbars", "--virtual-time-budget=4000", f"--screenshot={path}")
        command = [browser, *FLAGS, *shown, f"--user-data-dir={folder}/profile", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
