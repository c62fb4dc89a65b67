"""The candidate's side: finding a submission, running it in another process, talking to it.

`resolve` says what is to be graded, `Worker` runs it, `Call` and `ModuleCall` ask, `Reply` answers.
Importing this package imports neither torch nor any candidate's code.
"""
