"""Pages of the documentation, and the build of the site: `python -m docs.build`."""
