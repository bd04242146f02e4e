"""What RDKit says of molecules, as numbers; in worker processes where there are many.

Nothing here imports PyTorch: a worker starts in a fraction of a second.
"""
