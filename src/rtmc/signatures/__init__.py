"""Reduce each step to a state key and an action key."""

from rtmc.signatures.coding import EXACT, CodingSigner
from rtmc.signatures.signer import KeySigner, Signatures, Signer
from rtmc.signatures.states import LEVELS

__all__ = ["EXACT", "LEVELS", "CodingSigner", "KeySigner", "Signatures", "Signer"]
