"""RMSNorm: divide each row by its root mean square, then scale every feature by a gain."""
