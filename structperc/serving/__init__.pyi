from .app import application as application
from .requests import Limits as Limits
