"""Tables, figures, HTML pages and progress of a training.

tables.py             tables as text, Markdown and CSV
figures.py            figures by matplotlib
html_pages.py         HTML pages from the Jinja2 templates in templates/
training_progress.py  progress bar of a training, or one log line per epoch
"""
