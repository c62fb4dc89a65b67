raise RuntimeError("the candidate's conftest.py was executed")
