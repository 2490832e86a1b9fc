"""Export trained models to other programs: ONNX, C and JSON, from the steps of a model."""
