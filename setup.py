"""What pyproject.toml cannot say: the folder `configs` is the folder `structperc/configs` of an installed package."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["structperc*"]), "structperc.configs"],
    package_dir={"structperc.configs": "configs"},
)
