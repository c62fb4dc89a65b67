raise RuntimeError("the candidate's test was imported")
