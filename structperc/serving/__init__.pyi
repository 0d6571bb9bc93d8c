from .app import application as application
from .limits import Limits as Limits
