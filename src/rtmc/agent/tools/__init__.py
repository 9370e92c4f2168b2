"""The agent's tools, and the literal dict of their names."""

from rtmc.agent.tools.base import Observation, Tool, ToolError, Workbench
from rtmc.agent.tools.editor import EDITOR
from rtmc.agent.tools.search import SEARCH
from rtmc.agent.tools.shell import BASH
from rtmc.agent.tools.words import FINISH, THINK

__all__ = ["TOOLS", "Observation", "Tool", "ToolError", "Workbench"]

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (EDITOR, SEARCH, BASH, THINK, FINISH)}
