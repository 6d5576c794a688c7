"""Ground floor: the one folder that goes into the sandbox.

The standard library and RestrictedPython only.
"""
