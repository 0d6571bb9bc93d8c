from .lightning_messages import hide_lightning_messages as hide_lightning_messages
from .report import evaluate as evaluate
from .report import parameters as parameters
from .report import results_table as results_table
from .run_callbacks import GradualUnfreezing as GradualUnfreezing
from .run_callbacks import StopWhenConverged as StopWhenConverged
