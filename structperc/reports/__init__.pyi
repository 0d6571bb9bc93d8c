from .figures import check_figure as check_figure
from .figures import plot_nbest as plot_nbest
from .figures import plot_weights as plot_weights
from .figures import write_figure as write_figure
from .tables import markdown_table as markdown_table
from .tables import text_table as text_table
from .tables import write_csv as write_csv
from .training_progress import EpochBar as EpochBar
