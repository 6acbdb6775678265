"""The top of a report, as chromium shows it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipopt as fo

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SIZE = "1150,1480"


def draw(path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("chromium: expected on the path, found none")
    data = load_breast_cancer(as_frame=True)
    X, labels = data.data, data.target_names[data.target]
    model = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=800, random_state=0))
    model.fit(X[:400], labels[:400])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        fo.report.write_report(page, model, X, labels, weights=fo.scale_of(X), title="Tumours")
        shown = (f"--window-size={SIZE}", "--hide-scrollbars", "--virtual-time-budget=4000", f"--screenshot={path}")
        command = [browser, *FLAGS, *shown, f"--user-data-dir={folder}/profile", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
