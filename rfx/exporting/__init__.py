"""Trained models for other programs: ONNX, C and JSON, from the steps that a model tells."""
