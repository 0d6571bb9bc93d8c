"""List of packages; the folder `configs` is installed as `structperc/configs`, which pyproject.toml cannot express."""

from setuptools import find_namespace_packages, setup

CONFIGS = "structperc.configs"

setup(
    packages=[
        *find_namespace_packages(include=["structperc", "structperc.*"], exclude=["*.__pycache__"]),
        CONFIGS,
        *(f"{CONFIGS}.{folder}" for folder in find_namespace_packages("configs")),
    ],
    package_dir={CONFIGS: "configs"},
)
