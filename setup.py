"""What pyproject.toml cannot say: the folder `configs` is the folder `structperc/configs` of an installed package."""

from setuptools import find_namespace_packages, find_packages, setup

CONFIGS = "structperc.configs"

setup(
    packages=[
        *find_packages(include=["structperc*"]),
        CONFIGS,
        *(f"{CONFIGS}.{folder}" for folder in find_namespace_packages("configs")),
    ],
    package_dir={CONFIGS: "configs"},
)
