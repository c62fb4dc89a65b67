"""Adapters for implementations that are widely used, to grade them and to grade the suite by them.

Each module here offers one library under the names of the contract (`conformance/adapters.py`) and
declares in COMPONENTS what that library itself provides. Nothing is corrected on the way: layouts
and names are translated, values are the library's own.

The modules carry the names of the libraries they import, so this folder must never be on
`sys.path`.
"""
