"""Problems for the agent, one module for each kind."""
