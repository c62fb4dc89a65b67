"""Rotation matrix: the 2 x 2 matrix that turns a column vector by an angle."""
