"""Packaging of flipopt: the library alone. models/, data_prep/ and benchmarks/ run from a checkout."""

import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "flipopt" / "__init__.py").read_text()).group(1)

extras = {
    "cyipopt": ["cyipopt>=1.4"],
    "torch": ["torch>=2.4"],
    "sklearn": ["scikit-learn>=1.5"],
    "dask": ["dask>=2024.8", "distributed>=2024.8"],
    "bench": [
        "torch>=2.4",
        "pandas>=2.2",
        "foolbox>=3.3",
        "openturns>=1.23",
        "distributed>=2024.8",
        "hopsy>=1.6",
        "pyscipopt>=6.0",
    ],
    "docs": ["sphinx>=8", "myst-nb>=1.1", "furo>=2024.8", "ipykernel>=6.29", "pandas>=2.2", "scikit-learn>=1.5"],
    "test": [
        "pytest>=8",
        "pytest-xdist>=3.6",
        "hypothesis>=6.100",
        "ruff>=0.6",
        "mypy>=1.11",
        "torch>=2.4",
        "pandas>=2.2",
        "scikit-learn>=1.5",
        "skl2onnx>=1.18",
        "onnxscript>=0.5",
        "distributed>=2024.8",
    ],
}
extras["all"] = sorted({package for packages in extras.values() for package in packages} - {"cyipopt>=1.4"})

setup(
    name="flipopt",
    version=version,
    description="Closest flip points of classifiers, computed, verified and explained",
    long_description=(here / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="BSD-3-Clause",
    python_requires=">=3.11",
    packages=find_packages(include=["flipopt", "flipopt.*"]),
    package_data={
        "flipopt": [
            "py.typed",
            "data/*.npz",
            "data/*.json",
            "report/templates/*.*",
            "report/templates/audit/*.*",
            "report/templates/generator/*.*",
            "disagreement/labelling/page.*",
        ]
    },
    install_requires=[
        "numpy>=2.2",
        "scipy>=1.14",
        "numba>=0.61",
        "threadpoolctl>=3.5",
        "casadi>=3.6.7",
        "Jinja2>=3.1",
        "nlopt>=2.8",
        "PyWavelets>=1.7",
        "onnx>=1.16",
        "onnxruntime>=1.19",
        "matplotlib>=3.9",
        "pyarrow>=17",
        "rich>=13.7",
        "click>=8.1",
    ],
    extras_require=extras,
    entry_points={"console_scripts": ["flipopt=flipopt.cli.main:main"]},
)
