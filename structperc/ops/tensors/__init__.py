"""The reference: implementations in tensor operations, for every device and for second derivatives."""
