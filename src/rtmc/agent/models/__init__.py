"""The models that continue dialogues, one module for each kind."""
